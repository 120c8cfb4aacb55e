import type { CatalogModel } from '../../shared/catalog/catalog-schema.ts';
import { countSlots } from '../../shared/routing/route-candidate.ts';
import type { GrantedCall } from '../routing/call-route.ts';
import type { BatchPace } from './batch-pace.ts';
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
function chooseShare(
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

/** How many of the waiting inputs go with a call, and, if that is decided along with it, with each of the next ones. */
export interface PlannedCall {
  readonly plan: CallPlan;
  readonly shareOfNext: number | null;
}

/** The least part of a full call that batch lines make. */
const minBatchFill = 0.5;

/**
 * Plans a call for batch lines. It is full, except at the end of a batch: the last lines are spread evenly over as many
 * rounds of calls as full calls would take, because a last round of few full calls would leave slots unused.
 * @param limits of the call, from `limitBatchCalls`
 * @param expectsLines whether more lines will wait soon
 */
export function planBatchCall(
  { routes }: CatalogModel,
  limits: SharedCallLimits,
  waiting: number,
  expectsLines: boolean,
  decision: ShareDecision | null,
): PlannedCall {
  if (expectsLines) return { plan: fullCall(limits), shareOfNext: null };
  const share =
    decision !== null && waiting <= decision.waiting
      ? Math.min(decision.share, limits.maxInputs)
      : findLastShare(waiting, countBatchSlots(countSlots(routes)), limits.maxInputs);
  return { plan: { ...limits, maxInputs: share, enough: share }, shareOfNext: share };
}

function findLastShare(waiting: number, slots: number, maxInputs: number): number {
  const rounds = Math.max(1, Math.ceil(waiting / (slots * maxInputs)));
  return Math.min(
    maxInputs,
    Math.max(Math.ceil(maxInputs * minBatchFill), Math.ceil(waiting / (slots * rounds))),
  );
}

/** The slots that batch calls may use: see acquire.lua. */
const countBatchSlots = (slots: number): number =>
  slots < 2 ? slots : slots - Math.max(1, Math.floor(slots / 8));

/** At least two, so that the next call is full when a slot becomes free. At most so many, however many slots there are. */
const callsAhead = { min: 2, max: 8 };

/**
 * How many waiting batch lines are enough for now: a full call for each slot that batch calls may use. When all calls of a
 * model end at about the same time, the next ones are ready, and no lines are read while the responses are.
 */
export function findLinesAhead(model: CatalogModel, pace: BatchPace): number {
  const slots = countBatchSlots(countSlots(model.routes));
  const calls = Math.min(callsAhead.max, Math.max(callsAhead.min, slots));
  return limitBatchCalls(model, pace).maxInputs * calls;
}

/** The limits of calls for batch lines: those of the model's routes, and fewer inputs if the server is slow. */
export function limitBatchCalls(model: CatalogModel, pace: Pick<BatchPace, 'inputs'>): SharedCallLimits {
  const limits = findLimits(model);
  return { ...limits, maxInputs: Math.min(limits.maxInputs, pace.inputs) };
}

/**
 * Plans a call that callers or jobs wait for.
 * @param decision as for `chooseShare`
 */
export function planCall(
  model: CatalogModel,
  waiting: number,
  granted: GrantedCall,
  decision: ShareDecision | null,
): PlannedCall {
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
