import { isResponseStored } from '../../shared/billing/admitted-request.ts';
import type { AppError } from '../../shared/contract/errors.ts';
import type { PendingReplies } from './pending-replies.ts';
import type { Receiver } from './pending-reply.ts';

/** The caller has its error already; later frames matter only for settlement. */
const nobody: Receiver = { delta: () => undefined, end: () => undefined, fail: () => undefined };

/**
 * Fails the callers of an account's requests in this process. Queued requests are taken off their queue. Workers with
 * running requests get no message from here: they end and settle the account's runs themselves. A `cancel` would mean that
 * the caller disconnected, which is charged differently.
 */
export function endPendingReplies(waiters: PendingReplies, accountId: string, error: AppError): void {
  for (const { waiter, owner } of waiters.entries()) {
    const { request, receiver, workerId } = waiter;
    if (request.accountId !== accountId) continue;
    if (workerId === null) {
      // A request that is being queued right now is found by the next look-up.
      if (!owner.withdraw(waiter)) continue;
    } else if (isResponseStored(request)) {
      // Its worker stores the frames, and its readers are ended where they read.
      continue;
    } else if (waiter.hasOutput) {
      // Keep the pending reply: if the worker dies before it settles, the tokens in its frames are charged.
      waiter.receiver = nobody;
    } else {
      waiters.remove(request.requestId);
    }
    receiver.fail(error);
  }
}
