import type { CatalogModel } from '../../shared/catalog/catalog-schema.ts';
import { countSlots } from '../../shared/routing/route-way.ts';
import type { Chance } from '../routing/call-route.ts';
import type { CallLimits } from './waiting-inputs.ts';

/** Calls are what vendors bound: one is not split further than this for the sake of slots that are free. */
export const leastShare = 32;

/** What each of several calls takes of what waited when that was decided. */
export interface ShareDecision {
  readonly share: number;
  readonly waiting: number;
}

/** How much of what waits goes with a call. */
export interface CallShare {
  readonly share: number;
  /** Whether the calls beside it take as much, so that none of them takes more to finish a request. */
  readonly isEven: boolean;
  /** What further calls take, where that is decided with this one for all of them. */
  readonly shareOfNext: number | null;
}

/** @param decision what was decided for several calls together; void once more waits than did then */
export function chooseShare(
  { routes }: CatalogModel,
  waiting: number,
  chance: Chance,
  decision: ShareDecision | null,
): CallShare {
  if (decision !== null && waiting <= decision.waiting)
    return { share: decision.share, isEven: true, shareOfNext: null };
  const allSlots = countSlots(routes);
  const evenShare = findEvenShare(waiting, chance, allSlots);
  return evenShare === null
    ? { share: findShare(waiting, allSlots), isEven: false, shareOfNext: null }
    : { share: evenShare, isEven: true, shareOfNext: evenShare };
}

/**
 * Where nothing is under way, what waits is spread evenly over all slots: side by side is quicker than all in one call. Null
 * where something is.
 */
function findEvenShare(waiting: number, { spareSlots, slots }: Chance, allSlots: number): number | null {
  return spareSlots + 1 < slots ? null : Math.max(leastShare, Math.ceil(waiting / allSlots));
}

/**
 * How much of what waits goes with one call beside others: what half of all slots would have to take. Those under way will
 * end before a call that took everything would, and with less in each, what calls cost by themselves would slow all of
 * them.
 */
function findShare(waiting: number, allSlots: number): number {
  return Math.max(leastShare, Math.ceil((2 * waiting) / allSlots));
}

/** What every route of the model takes: a call that fails on one of them goes on to another as it is. */
export function findLimits({ routes }: CatalogModel): CallLimits {
  return {
    maxInputs: Math.min(...routes.map(({ upstream }) => upstream.maxBatchInputs)),
    maxTokens: Math.min(...routes.map(({ upstream }) => upstream.maxBatchTokens)),
  };
}
