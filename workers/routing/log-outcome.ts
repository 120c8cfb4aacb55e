import type { OutcomeResult, KeyCooldown } from '../../shared/routing/outcome-script.ts';
import type { RouteCandidate } from '../../shared/routing/route-candidate.ts';
import type { Logger } from '../../shared/runtime/logger.ts';

export const closedMessage = 'a route is well again: its circuit breaker closed';

/**
 * Logs what a call's outcome changes for later calls: the circuit breaker of its route and the cooldown of its
 * key.
 */
export function logOutcome(
  log: Logger,
  { route, fingerprint }: RouteCandidate,
  { breaker, setAsideFor }: OutcomeResult,
  cooldown: KeyCooldown | null,
  accountIds: readonly string[],
): void {
  const fields = { route: route.id, upstream: route.upstream.name };
  if (breaker === 'opened') log.warn(fields, 'a route fails too often: its circuit breaker opened');
  if (breaker === 'closed') log.info(fields, closedMessage);
  if (cooldown === null || !cooldown.reason.startsWith('refused')) return;
  const { reason } = cooldown;
  const forMs = setAsideFor === 'all' ? cooldown.forMs : (cooldown.forAccountMs ?? cooldown.forMs);
  const refused = setAsideFor === 'all' ? {} : { accounts: accountIds.slice(0, 10) };
  log.error(
    { ...fields, key: fingerprint, forMs, ...refused, reason },
    `a key of an upstream is set aside${setAsideFor === 'all' ? '' : ' for accounts that it was refused to'}`,
  );
}
