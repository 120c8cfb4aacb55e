import { AppError } from '../../shared/contract/errors.ts';
import type { CallSlot } from '../../shared/routing/acquire-script.ts';
import { UpstreamError, type AcquireExtraSlot } from '../upstreams/upstream.ts';
import type { AcquireOptions } from './wait-queue.ts';
import { findCooldown, classifyFailure } from './retry-policy.ts';
import type { RouteLimiter } from './route-limiter.ts';

/** Releases the slot of a failed call. */
export function releaseFailed(
  limiter: RouteLimiter,
  slot: CallSlot,
  error: unknown,
  accountIds?: readonly string[],
): void {
  // Other errors, such as a cancellation by the caller or an internal error, say nothing about the route.
  if (error instanceof UpstreamError)
    limiter.release(slot, classifyFailure(error), findCooldown(error), accountIds);
  else limiter.release(slot, 'none');
}

/**
 * Waits for another slot of a candidate that a call already has a slot of. Returns null if it cannot get one; the call
 * then continues with a single slot.
 */
export async function acquireExtraSlot(
  limiter: RouteLimiter,
  {
    waitLimits,
    deadlineAtMs,
    isBackground = false,
  }: Pick<AcquireOptions, 'waitLimits' | 'deadlineAtMs' | 'isBackground'>,
  { candidate, accountId }: CallSlot,
  signal: AbortSignal,
): ReturnType<AcquireExtraSlot> {
  const options = { accountIds: () => [accountId], signal, waitLimits, deadlineAtMs, isBackground };
  try {
    const slot = await limiter.acquire([candidate], options);
    if (slot === null) return null;
    return {
      release: (outcome) => {
        if (outcome?.status === 'rejected') releaseFailed(limiter, slot, outcome.reason);
        else limiter.release(slot, outcome === null ? 'none' : 'ok');
      },
    };
  } catch (error) {
    if (signal.aborted || error instanceof AppError) return null;
    throw error;
  }
}
