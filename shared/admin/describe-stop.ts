import type { CandidateState } from '../routing/route-state-store.ts';

/** Describes why a candidate is currently not called for any account. Returns null if it can be called. */
export function describeStop({ cooldown, breaker, pauseMs }: CandidateState): string | null {
  if (cooldown?.isForAll === true)
    return `its key is on cooldown for ${Math.ceil(cooldown.forMs / 1_000)} s: ${cooldown.reason}`;
  if (breaker === 'open') return `its breaker is open for ${Math.ceil(pauseMs / 1_000)} s after failed calls`;
  return null;
}
