import type { CatalogModel } from '../../shared/catalog/catalog-schema.ts';
import { countSlots } from '../../shared/routing/route-candidate.ts';
import type { CallClass } from '../routing/call-class.ts';
import type { GrantedCall } from '../routing/call-route.ts';
import type { CallPlan, SharedCallLimits } from './waiting-inputs.ts';

/**
 * Minimum number of inputs per call when waiting inputs are spread over free slots, because vendors limit the number of
 * calls.
 */
export const minShare = 32;

/** The number of waiting inputs that each of several calls takes, decided for all of them together. */
export interface ShareDecision {
  readonly share: number;
  readonly waiting: number;
}

/** Number of waiting inputs that go with a call. */
export interface CallShare {
  readonly share: number;
  /**
   * Whether parallel calls take the same number of inputs. If so, none of them takes extra inputs to complete a
   * request.
   */
  readonly isEven: boolean;
  /** Number of inputs that each of the next calls takes, if that is decided along with this call. */
  readonly shareOfNext: number | null;
}

/**
 * Chooses how many of the waiting inputs go with a call.
 * @param decision the decision made for several calls together; ignored if more inputs wait now than when it was made
 */
export function chooseShare(
  { routes }: CatalogModel,
  waiting: number,
  granted: GrantedCall,
  decision: ShareDecision | null,
): CallShare {
  if (decision !== null && waiting <= decision.waiting)
    return { share: decision.share, isEven: true, shareOfNext: null };
  const allSlots = countSlots(routes);
  const evenShare = findEvenShare(waiting, granted, allSlots);
  return evenShare === null
    ? { share: findShare(waiting, allSlots), isEven: false, shareOfNext: null }
    : { share: evenShare, isEven: true, shareOfNext: evenShare };
}

/**
 * Spreads the waiting inputs evenly over all slots if no call is running, because parallel calls are faster
 * than one call. Returns null if a call is running.
 */
function findEvenShare(waiting: number, { spareSlots, slots }: GrantedCall, allSlots: number): number | null {
  return spareSlots + 1 < slots ? null : Math.max(minShare, Math.ceil(waiting / allSlots));
}

/**
 * Returns how many waiting inputs go with one call while others run: twice an even share over all slots. A call that
 * took all of them would still be running when the other calls have finished. Smaller calls would be slower overall,
 * because of the fixed cost per call.
 */
function findShare(waiting: number, allSlots: number): number {
  return Math.max(minShare, Math.ceil((2 * waiting) / allSlots));
}

/**
 * Plans how many of the waiting inputs of a class go with a call. Calls for batch lines are full.
 * @param decision as for `chooseShare`
 */
export function planCall(
  callClass: CallClass,
  model: CatalogModel,
  waiting: number,
  granted: GrantedCall,
  decision: ShareDecision | null,
): { readonly plan: CallPlan; readonly shareOfNext: number | null } {
  if (callClass === 'batch') return { plan: fullCall(findLimits(model)), shareOfNext: null };
  const { share, isEven, shareOfNext } = chooseShare(model, waiting, granted, decision);
  const limits = findLimits(model);
  const maxInputs = Math.min(limits.maxInputs, isEven ? share : 2 * share);
  return { plan: { ...limits, maxInputs, enough: Math.min(maxInputs, share) }, shareOfNext };
}

/** A call as large as the limits allow. */
export const fullCall = (limits: SharedCallLimits): CallPlan => ({ ...limits, enough: limits.maxInputs });

/**
 * The limits that every route of the model accepts. A call must fit all routes, because one that fails on a route is
 * retried on another with the same inputs.
 */
export function findLimits({ routes }: CatalogModel): SharedCallLimits {
  return {
    maxInputs: Math.min(...routes.map(({ upstream }) => upstream.maxBatchInputs)),
    maxTokens: Math.min(...routes.map(({ upstream }) => upstream.maxBatchTokens)),
  };
}
