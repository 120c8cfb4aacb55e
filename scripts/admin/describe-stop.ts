import type { WayState } from '../../shared/routing/route-state-store.ts';

/** Why a way is not called now, for any account; null where it is. */
export function describeStop({ setAside, breaker, pauseMs }: WayState): string | null {
  if (setAside?.isForAll === true)
    return `its key is on cooldown for ${Math.ceil(setAside.forMs / 1_000)} s: ${setAside.reason}`;
  if (breaker === 'open') return `its breaker is open for ${Math.ceil(pauseMs / 1_000)} s after failed calls`;
  return null;
}
