import { AppError } from '../../shared/contract/errors.ts';
import type { RouteGrant } from '../../shared/routing/grant-script.ts';
import { UpstreamError, type EnterAgain } from '../upstreams/upstream.ts';
import type { GateLimits } from './gate-queue.ts';
import { findSetAside, judgeFailure } from './retry-policy.ts';
import type { RouteGate } from './route-gate.ts';

/** Gives back the slot of a call that failed. */
export function leaveFailed(
  gate: RouteGate,
  grant: RouteGrant,
  error: unknown,
  accountIds?: readonly string[],
): void {
  // A call that was ended because its caller left, and a fault of ours, say nothing of the route.
  if (error instanceof UpstreamError) gate.leave(grant, judgeFailure(error), findSetAside(error), accountIds);
  else gate.leave(grant, 'none');
}

/** Waits for a further slot of the way that a call has one of. Null where none is to be had: that call goes on alone. */
export async function enterAgain(
  gate: RouteGate,
  {
    patience,
    deadlineAtMs,
    isBackground = false,
  }: Pick<GateLimits, 'patience' | 'deadlineAtMs' | 'isBackground'>,
  { way, accountId }: RouteGrant,
  signal: AbortSignal,
): ReturnType<EnterAgain> {
  const limits = { accountIds: () => [accountId], signal, patience, deadlineAtMs, isBackground };
  try {
    const grant = await gate.enter([way], limits);
    if (grant === null) return null;
    return {
      leave: (outcome) => {
        if (outcome?.status === 'rejected') leaveFailed(gate, grant, outcome.reason);
        else gate.leave(grant, outcome === null ? 'none' : 'ok');
      },
    };
  } catch (error) {
    if (signal.aborted || error instanceof AppError) return null;
    throw error;
  }
}
