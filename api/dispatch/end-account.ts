import { isKept } from '../../shared/queue/job-kinds.ts';
import type { AppError } from '../../shared/contract/errors.ts';
import type { ReplyWaiters } from './reply-waiters.ts';
import type { Receiver } from './waiter.ts';

/** The caller has been told; what else comes is of interest to the settlement alone. */
const nobody: Receiver = { delta: () => undefined, end: () => undefined, fail: () => undefined };

/**
 * Tells the callers of an account's requests in this process that they have ended. What is queued is taken off its
 * queue. A worker that has a request is sent nothing from here: it ends its runs of the account by itself and settles
 * them, as a `cancel` would mean a caller who left, and is charged otherwise.
 */
export function endWaiters(waiters: ReplyWaiters, accountId: string, error: AppError): void {
  for (const { waiter, owner } of waiters.entries()) {
    const { request, receiver, workerId } = waiter;
    if (request.accountId !== accountId) continue;
    if (workerId === null) {
      // A request that is being queued at this moment is found again by the next look-up.
      if (!owner.withdraw(waiter)) continue;
    } else if (isKept(request)) {
      // Its frames are kept by its worker, and its readers are ended where they read.
      continue;
    } else if (waiter.hasOutput) {
      // Still waited for: if the worker dies before it settles, the tokens of its frames are charged.
      waiter.receiver = nobody;
    } else {
      waiters.remove(request.requestId);
    }
    receiver.fail(error);
  }
}
