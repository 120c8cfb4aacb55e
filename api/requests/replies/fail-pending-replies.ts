import { isResponseStored } from '../../../shared/money/admitted-request.ts';
import type { AppError } from '../../../shared/contract/errors.ts';
import type { PendingReplies } from './pending-replies.ts';
import type { Receiver } from './pending-reply.ts';

/** Discards frames: the caller already has its error, and later frames are only needed for settlement. */
const discard: Receiver = {
  delta: () => undefined,
  end: ({ release }) => release(),
  fail: () => undefined,
};

/**
 * Fails the callers of an account's requests in this process. Removes queued requests from their queue. Sends nothing
 * to workers: they stop and settle the account's running requests by themselves. A `cancel` would mean that the caller
 * disconnected, which is billed differently.
 */
export function failPendingReplies(replies: PendingReplies, accountId: string, error: AppError): void {
  for (const { pending, owner } of replies.entries()) {
    const { request, receiver, workerId } = pending;
    if (request.accountId !== accountId) continue;
    if (workerId === null) {
      // A request that is being queued right now cannot be withdrawn yet. The next check fails it.
      if (!owner.withdraw(pending)) continue;
    } else if (isResponseStored(request)) {
      // Its worker stores the frames. `StoredResponses.endAccount` fails its readers.
      continue;
    } else if (pending.hasOutput) {
      // Do not remove the pending reply: if the worker dies before it settles the request, the caller is billed for the
      // tokens that the frames report.
      pending.receiver = discard;
    } else {
      replies.remove(request.requestId);
    }
    receiver.fail(error);
  }
}
