import type { QueueName } from '../queue/job-kinds.ts';
import type { RedisClient } from '../../platform/redis/redis-client.ts';
import { redisChannels } from '../../platform/redis/redis-keys.ts';

/** Why a request is cancelled although its caller did not disconnect. */
export interface CancelCause {
  /** The gateway cannot deliver the response. The caller is not charged, unlike one that disconnects. */
  readonly isOurFault?: true;
  /** The caller did not read the response. */
  readonly isUnread?: true;
}

/** How a test of a model went. */
export interface ModelTestResult {
  readonly ok: boolean;
  /** The route that was called last; null if none was. */
  readonly upstream: string | null;
  readonly upstreamModel: string | null;
  /** The fingerprint of the key that was tested; null if the test was not of one key. */
  readonly key: string | null;
  readonly durationMs: number;
  /** As the vendor reported them; null if it did not. */
  readonly promptTokens: number | null;
  readonly completionTokens: number | null;
  /** The vendor's HTTP status, if it was an error. */
  readonly status: number | null;
  /** Why it failed, in the vendor's own words; null if it did not. */
  readonly reason: string | null;
}

/** A message from an api process to the worker that runs a request. */
export type RunControl = { readonly requestId: string } & (
  | { readonly action: 'pause' | 'resume' }
  /** The request is no longer needed, by default because the caller disconnected. */
  | ({ readonly action: 'cancel' } & CancelCause)
  /** The worker may send the result that this attempt offered, up to this byte. */
  | { readonly action: 'send'; readonly attempt: number; readonly upToByte: number }
);

/** A message from an api process to a worker: about one request, or about everything received on its channel. */
export type ControlMessage =
  | RunControl
  | { readonly action: 'received'; readonly channel: string; readonly mark: number }
  /** The account has cancelled a durable job that this worker runs. */
  | { readonly action: 'cancel-job'; readonly jobId: string }
  /**
   * The operator cancels what waits for a call slot in this queue. The worker adds how many requests and jobs those were
   * to the list `reply`.
   */
  | { readonly action: 'drain'; readonly queue: QueueName; readonly reply: string }
  /**
   * The operator tests a model: by its routes, as a request would use them, or with each key of one upstream. The worker
   * adds an array of `ModelTestResult` to the list `reply`.
   */
  | {
      readonly action: 'test-model';
      readonly model: string;
      readonly upstream: string | null;
      readonly reply: string;
    }
  /** Lines of a batch that this worker has must not be run any more. */
  | { readonly action: 'check-batches' };

/**
 * @returns whether the worker is listening. After a lost connection it listens again within moments; a dead worker
 * never does
 */
export async function sendControl(
  redis: RedisClient,
  workerId: string,
  message: ControlMessage,
): Promise<boolean> {
  const listeners = await redis.spublish(redisChannels.control(workerId), JSON.stringify(message));
  return (listeners as number) > 0;
}
