import type { RedisClient } from '../../shared/redis/redis-client.ts';
import { sendControl, type CancelCause, type ControlMessage } from '../../shared/reply/worker-control.ts';
import type { Logger } from '../../shared/runtime/logger.ts';
import type { PendingReply } from './pending-reply.ts';

export type WaiterControl = 'pause' | 'resume' | 'cancel';

/** A live worker subscribes again within this time after its connection was cut. */
const deafTimeoutMs = 15_000;

/** A message that a worker missed because Redis or the worker's connection was down. */
interface Untold {
  readonly tell: () => Promise<boolean>;
  /** Since when Redis reports no subscription of the worker; null while Redis is down. */
  deafSinceMs: number | null;
}

/** Sends control messages to the workers that run this process's requests. A worker that misses them continues on its own. */
export class WorkerControls {
  readonly #redis: RedisClient;
  readonly #log: Logger;
  /** Undelivered messages to retry, by request id. */
  readonly #untold = new Map<string, Untold>();
  /** The latest message for each request. Earlier ones must not be sent again, even if they turn out undelivered. */
  readonly #lastWords = new WeakMap<PendingReply, ControlMessage>();

  constructor(redis: RedisClient, log: Logger) {
    this.#redis = redis;
    this.#log = log;
  }

  get hasUntold(): boolean {
    return this.#untold.size > 0;
  }

  /** @param cause the cause of a cancel */
  control(waiter: PendingReply, action: WaiterControl, cause: CancelCause = {}): void {
    const { workerId, request } = waiter;
    if (workerId === null) return;
    const { requestId } = request;
    const message: ControlMessage = { action, requestId, ...cause };
    this.#untold.delete(requestId);
    this.#lastWords.set(waiter, message);
    this.#send(workerId, message, (untold) => {
      // A missed cancel or resume leaves a worker running for nobody or stuck. A missed pause is repeated anyway.
      if (action !== 'pause' && this.#lastWords.get(waiter) === message) this.#untold.set(requestId, untold);
    });
  }

  /** Asks for a result up to this byte. The caller repeats requests that get lost. */
  askFor({ workerId, request: { requestId }, order: { attempt } }: PendingReply, upToByte: number): void {
    if (workerId !== null) this.#send(workerId, { action: 'send', requestId, attempt, upToByte });
  }

  /** Confirms that the worker's frames up to the mark have arrived on the channel. */
  received(workerId: string, channel: string, mark: number): void {
    this.#send(workerId, { action: 'received', channel, mark });
  }

  /** Cancels a request that has no pending reply. */
  cancelStray(workerId: string, requestId: string): void {
    this.#send(workerId, { action: 'cancel', requestId });
  }

  /**
   * Retries undelivered messages. Otherwise a worker would keep running for a caller that already got an error, and charge
   * for the whole response.
   */
  async tellUntold(): Promise<void> {
    await Promise.all(Array.from(this.#untold, ([requestId, untold]) => this.#tellAgain(requestId, untold)));
  }

  async #tellAgain(requestId: string, untold: Untold): Promise<void> {
    // While the node of one worker's channel is down, the other workers are still notified.
    const isHeard = await untold.tell().catch(() => null);
    if (isHeard === null) return;
    untold.deafSinceMs ??= Date.now();
    const isDead = Date.now() - untold.deafSinceMs > deafTimeoutMs;
    // A newer message may have replaced it meanwhile.
    if ((isHeard || isDead) && this.#untold.get(requestId) === untold) this.#untold.delete(requestId);
  }

  #send(workerId: string, message: ControlMessage, onUntold?: (untold: Untold) => void): void {
    const tell = (): Promise<boolean> => sendControl(this.#redis, workerId, message);
    const onUnheard = (deafSinceMs: number | null, error?: unknown): void => {
      onUntold?.({ tell, deafSinceMs });
      this.#log.debug({ ...message, err: error }, 'a message to a worker could not be sent');
    };
    tell()
      .then((isHeard) => {
        if (!isHeard) onUnheard(Date.now());
      })
      .catch((error: unknown) => onUnheard(null, error));
  }
}
