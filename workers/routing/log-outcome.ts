import type { OutcomeAnswer, SetAside } from '../../shared/routing/outcome-script.ts';
import type { RouteWay } from '../../shared/routing/route-way.ts';
import type { Logger } from '../../shared/runtime/logger.ts';

export const closedMessage = 'a route is well again: its circuit breaker closed';

/** Tells operators what the end of a call changed for those that come: the breaker of its route, the use of its key. */
export function logOutcome(
  log: Logger,
  { route, fingerprint }: RouteWay,
  { breaker, setAsideFor }: OutcomeAnswer,
  setAside: SetAside | null,
  accountIds: readonly string[],
): void {
  const fields = { route: route.id, upstream: route.upstream.name };
  if (breaker === 'opened') log.warn(fields, 'a route fails too often: its circuit breaker opened');
  if (breaker === 'closed') log.info(fields, closedMessage);
  if (setAside === null || !setAside.reason.startsWith('refused')) return;
  const { reason } = setAside;
  const forMs = setAsideFor === 'all' ? setAside.forMs : (setAside.forAccountMs ?? setAside.forMs);
  const refused = setAsideFor === 'all' ? {} : { accounts: accountIds.slice(0, 10) };
  log.error(
    { ...fields, key: fingerprint, forMs, ...refused, reason },
    `a key of an upstream is set aside${setAsideFor === 'all' ? '' : ' for accounts that it was refused to'}`,
  );
}
