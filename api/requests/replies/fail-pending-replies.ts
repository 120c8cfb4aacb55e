import { isResponseStored } from '../../../shared/money/admitted-request.ts';
import { AppError } from '../../../shared/contract/errors.ts';
import type { RedisClient } from '../../../shared/platform/redis/redis-client.ts';
import { releaseReservation } from '../../../shared/work/settlement/settle-script.ts';
import type { PendingReplies } from './pending-replies.ts';
import type { PendingReply, Receiver } from './pending-reply.ts';

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

/**
 * Fails the callers of all requests in this process, because it exits before they end. Removes queued requests from
 * their queue, and cancels the others at their workers. Requests whose response is stored continue. Resolves when those
 * that were queued have ended.
 */
export async function failAllPendingReplies(replies: PendingReplies, redis: RedisClient): Promise<void> {
  const withdrawn: Promise<unknown>[] = [];
  for (const { pending, owner } of replies.entries()) {
    const { request, receiver, workerId } = pending;
    if (isResponseStored(request)) continue;
    const ended = workerId === null ? whenEnded(pending) : null;
    if (ended !== null && owner.withdraw(pending)) {
      // Its owner releases its reservation as well, but nobody waits for that. A second release changes nothing.
      withdrawn.push(ended.then(() => releaseReservation(redis, request)));
      receiver.fail(serverStopped());
    } else {
      replies.fail(pending, serverStopped().asPossiblyCharged(request.requestId));
    }
  }
  await Promise.all(withdrawn);
}

function whenEnded(pending: PendingReply): Promise<void> {
  const { onEnded } = pending;
  return new Promise((resolve) => {
    pending.onEnded = () => {
      onEnded?.();
      resolve();
    };
  });
}

const serverStopped = (): AppError =>
  new AppError('service_unavailable', {
    message: 'The server was restarted before the response was complete. Send the request again.',
    messageRu: 'Сервер был перезапущен до завершения ответа. Отправьте запрос ещё раз.',
    expose: true,
  });
