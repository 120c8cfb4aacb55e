import { AppError } from '../../shared/contract/errors.ts';
import type { CallSlot } from './acquire-script.ts';
import { UpstreamError, type AcquireExtraSlot } from '../upstreams/upstream.ts';
import type { SlotOptions } from './wait-queue.ts';
import { findCooldown, classifyFailure } from './retry-policy.ts';
import type { RequestFailures } from './request-failures.ts';
import type { RouteLimiter } from './route-limiter.ts';

/** What the end of a request's call is reported to. */
export interface CallReports {
  readonly limiter: RouteLimiter;
  readonly failures: RequestFailures;
}

/** Releases the slot of a failed call. */
export function releaseFailed(
  { limiter, failures }: CallReports,
  slot: CallSlot,
  error: unknown,
  accountIds: readonly string[] = [slot.accountId],
): void {
  // Other errors, such as a cancellation by the caller or an internal error, say nothing about the route.
  if (!(error instanceof UpstreamError)) {
    limiter.release(slot, 'none');
    return;
  }
  const outcome = classifyFailure(error);
  if (outcome === 'bad') failures.add(slot, error, accountIds);
  else limiter.release(slot, outcome, findCooldown(error), accountIds);
}

/**
 * Waits for another slot of a candidate that a call already has a slot of. Returns null if it cannot get one; the call
 * then continues with a single slot.
 */
export async function acquireExtraSlot(
  reports: CallReports,
  {
    waitLimits,
    deadlineAtMs,
    callClass = 'interactive',
  }: Pick<SlotOptions, 'waitLimits' | 'deadlineAtMs' | 'callClass'>,
  { candidate, accountId }: CallSlot,
  signal: AbortSignal,
): ReturnType<AcquireExtraSlot> {
  const { limiter } = reports;
  const options = { accountIds: () => [accountId], signal, waitLimits, deadlineAtMs, callClass };
  try {
    const slot = await limiter.acquire([candidate], options);
    if (slot === null) return null;
    return {
      release: (outcome) => {
        if (outcome?.status === 'rejected') releaseFailed(reports, slot, outcome.reason);
        else limiter.release(slot, outcome === null ? 'none' : 'ok');
      },
    };
  } catch (error) {
    if (signal.aborted || error instanceof AppError) return null;
    throw error;
  }
}
