import type { RedisClient } from '../../../shared/platform/redis/redis-client.ts';
import {
  sendControl,
  type CancelCause,
  type ControlMessage,
} from '../../../shared/work/replies/worker-control.ts';
import type { Logger } from '../../../shared/platform/runtime/logger.ts';
import type { PendingReply } from './pending-reply.ts';

export type ReplyControl = 'pause' | 'resume' | 'cancel';

/** A live worker resubscribes within this time after losing its connection. */
const unsubscribedTimeoutMs = 15_000;

/** A message that a worker missed because Redis or the worker's connection was down. */
interface UndeliveredMessage {
  readonly send: () => Promise<boolean>;
  /** When Redis first reported that the worker is not subscribed; null if Redis has been down so far. */
  unsubscribedSinceMs: number | null;
}

/**
 * Sends control messages to the workers that run this process's requests. A worker that misses a message continues as
 * before.
 */
export class WorkerControls {
  readonly #redis: RedisClient;
  readonly #log: Logger;
  /** Undelivered messages to retry, by request id. */
  readonly #undelivered = new Map<string, UndeliveredMessage>();
  /**
   * The latest message for each request. If earlier messages turn out not to have been delivered, they must not be sent
   * again.
   */
  readonly #lastMessages = new WeakMap<PendingReply, ControlMessage>();

  constructor(redis: RedisClient, log: Logger) {
    this.#redis = redis;
    this.#log = log;
  }

  get hasUndelivered(): boolean {
    return this.#undelivered.size > 0;
  }

  /** @param cause the cause of a cancel */
  control(pending: PendingReply, action: ReplyControl, cause: CancelCause = {}): void {
    const { workerId, request } = pending;
    if (workerId === null) return;
    const { requestId } = request;
    const message: ControlMessage = { action, requestId, ...cause };
    this.#undelivered.delete(requestId);
    this.#lastMessages.set(pending, message);
    this.#send(workerId, message, (undelivered) => {
      // After a missed cancel, the worker keeps running although nobody needs the response; after a missed resume, it
      // stays paused. Pauses need no retry, because the stream repeats them anyway.
      if (action !== 'pause' && this.#lastMessages.get(pending) === message)
        this.#undelivered.set(requestId, undelivered);
    });
  }

  /** Requests a result up to this byte. `IncomingResults` repeats requests that get lost. */
  requestResult(
    { workerId, request: { requestId }, order: { attempt } }: PendingReply,
    upToByte: number,
  ): void {
    if (workerId !== null) this.#send(workerId, { action: 'send', requestId, attempt, upToByte });
  }

  /** Confirms that the worker's frames up to the mark have arrived on the channel. */
  acknowledge(workerId: string, channel: string, mark: number): void {
    this.#send(workerId, { action: 'received', channel, mark });
  }

  /** Cancels a request that has no pending reply. @param cause why, unless its caller disconnected */
  cancelRequest(workerId: string, requestId: string, cause: CancelCause): void {
    this.#send(workerId, { action: 'cancel', requestId, ...cause }, (undelivered) => {
      this.#undelivered.set(requestId, undelivered);
    });
  }

  /**
   * Retries undelivered messages. Otherwise a worker would keep running for a caller that already got an error, and the
   * account would be charged for the whole response.
   */
  async retryUndelivered(): Promise<void> {
    await Promise.all(
      Array.from(this.#undelivered, ([requestId, undelivered]) => this.#retry(requestId, undelivered)),
    );
  }

  async #retry(requestId: string, undelivered: UndeliveredMessage): Promise<void> {
    // If the Cluster node of one worker's channel is down, the other workers are still notified.
    const isReceived = await undelivered.send().catch(() => null);
    if (isReceived === null) return;
    undelivered.unsubscribedSinceMs ??= Date.now();
    const isDead = Date.now() - undelivered.unsubscribedSinceMs > unsubscribedTimeoutMs;
    // A newer message may have replaced it.
    if ((isReceived || isDead) && this.#undelivered.get(requestId) === undelivered)
      this.#undelivered.delete(requestId);
  }

  #send(
    workerId: string,
    message: ControlMessage,
    onUndelivered?: (undelivered: UndeliveredMessage) => void,
  ): void {
    const send = (): Promise<boolean> => sendControl(this.#redis, workerId, message);
    const onMissed = (unsubscribedSinceMs: number | null, error?: unknown): void => {
      onUndelivered?.({ send, unsubscribedSinceMs });
      this.#log.debug({ ...message, err: error }, 'worker message not delivered');
    };
    send()
      .then((isReceived) => {
        if (!isReceived) onMissed(Date.now());
      })
      .catch((error: unknown) => onMissed(null, error));
  }
}
