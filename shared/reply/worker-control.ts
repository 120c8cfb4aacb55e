import type { RedisClient } from '../redis/redis-client.ts';
import { redisChannels } from '../redis/redis-keys.ts';

/** Why a request is no longer needed if its caller did not leave. */
export interface CancelCause {
  /** The response cannot reach the caller through our fault, so the caller is not charged as if it had left. */
  readonly isOurFault?: true;
  /** The caller did not read the response. */
  readonly isUnread?: true;
}

/** What an api process asks of the worker that runs a request. */
export type RunControl = { readonly requestId: string } & (
  | { readonly action: 'pause' | 'resume' }
  /** The request is no longer needed: the caller left, unless the cause says otherwise. */
  | ({ readonly action: 'cancel' } & CancelCause)
  /** The bytes up to this one, of the result that this attempt offered, may be sent. */
  | { readonly action: 'send'; readonly attempt: number; readonly upToByte: number }
);

/** A message from an api process to a worker: about one request, or about everything received on its channel. */
export type ControlMessage =
  | RunControl
  | { readonly action: 'received'; readonly channel: string; readonly mark: number }
  /** The account has cancelled a durable job that this worker runs. */
  | { readonly action: 'cancel-job'; readonly jobId: string };

/** @returns whether the worker listens. After a lost connection it will again in a moment; a dead worker never will */
export async function sendControl(
  redis: RedisClient,
  workerId: string,
  message: ControlMessage,
): Promise<boolean> {
  const listeners = await redis.spublish(redisChannels.control(workerId), JSON.stringify(message));
  return (listeners as number) > 0;
}
