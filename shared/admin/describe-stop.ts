import type { CandidateState } from '../routing/route-state-store.ts';
import { writeOperatorReason } from './operator-reasons.ts';

/** Describes why a candidate is currently not called for any account. Returns null if it can be called. */
export function describeStop({ cooldown, breaker, pauseMs }: CandidateState): string | null {
  if (cooldown?.isForAll === true) return describeCooldown(cooldown);
  if (breaker === 'open') return writeOperatorReason('breakerOpen', { seconds: Math.ceil(pauseMs / 1_000) });
  return null;
}

/** Describes why a candidate is currently not called for some accounts. Returns null if it can be called for all. */
export function describePartialStop({ cooldown }: CandidateState): string | null {
  return cooldown === null
    ? null
    : writeOperatorReason('refusedAccounts', { reason: describeCooldown(cooldown) });
}

const describeCooldown = ({ forMs, reason }: NonNullable<CandidateState['cooldown']>): string =>
  writeOperatorReason('cooldown', { seconds: Math.ceil(forMs / 1_000), reason });

/** Describes the last refusal of a key, with the time in ISO format. */
export const describeRefusal = (refusal: CandidateState['lastRefusal']) =>
  refusal && { at: new Date(refusal.atMs).toISOString(), reason: refusal.reason };
