import type { OutcomeResult, KeyCooldown } from './outcome-script.ts';
import type { RouteCandidate } from '../../shared/routing/route-candidate.ts';
import type { Logger } from '../../shared/platform/runtime/logger.ts';

export const closedMessage = 'route circuit breaker closed';

/**
 * Logs the effects of a call's outcome on later calls: a change of its route's circuit breaker, or a cooldown of its
 * key.
 */
export function logOutcome(
  log: Logger,
  { route, fingerprint }: RouteCandidate,
  { breaker, cooldownFor }: OutcomeResult,
  cooldown: KeyCooldown | null,
  accountIds: readonly string[],
): void {
  const fields = { route: route.id, upstream: route.upstream.name };
  if (breaker === 'opened') log.warn(fields, 'route circuit breaker opened: too many failures');
  if (breaker === 'closed') log.info(fields, closedMessage);
  // A rate limit is part of normal operation. A rejected key needs the operator.
  if (cooldown?.failure !== 'auth') return;
  const { reason } = cooldown;
  const forMs = cooldownFor === 'all' ? cooldown.forMs : (cooldown.forAccountMs ?? cooldown.forMs);
  const affected = cooldownFor === 'all' ? {} : { accounts: accountIds.slice(0, 10) };
  log.error(
    { ...fields, key: fingerprint, forMs, ...affected, reason },
    `upstream key on cooldown${cooldownFor === 'all' ? '' : ' for the accounts whose calls were refused'}`,
  );
}
