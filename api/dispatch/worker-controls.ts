import type { RedisClient } from '../../shared/redis/redis-client.ts';
import { sendControl, type CancelCause, type ControlMessage } from '../../shared/reply/reply-channel.ts';
import type { Logger } from '../../shared/runtime/logger.ts';
import type { Waiter } from './waiter.ts';

export type WaiterControl = 'pause' | 'resume' | 'cancel';

/** A worker that is alive listens again within so long after its connection was cut. */
const deafPatienceMs = 15_000;

/** Something that a worker has not heard: Redis was away, or the worker's connection was. */
interface Untold {
  readonly tell: () => Promise<boolean>;
  /** Since when Redis says that the worker does not listen; null while Redis is away. */
  deafSinceMs: number | null;
}

/** What this process tells the workers that run its requests. A worker that is not told goes on by itself. */
export class WorkerControls {
  readonly #redis: RedisClient;
  readonly #log: Logger;
  /** What workers must be told as soon as they can be, by request. */
  readonly #untold = new Map<string, Untold>();
  /** The last word on a request. What came before it must not be said again, whenever it turns out to be unheard. */
  readonly #lastWords = new WeakMap<Waiter, ControlMessage>();

  constructor(redis: RedisClient, log: Logger) {
    this.#redis = redis;
    this.#log = log;
  }

  get hasUntold(): boolean {
    return this.#untold.size > 0;
  }

  /** @param cause of a cancel */
  control(waiter: Waiter, action: WaiterControl, cause: CancelCause = {}): void {
    const { workerId, request } = waiter;
    if (workerId === null) return;
    const { requestId } = request;
    const message: ControlMessage = { action, requestId, ...cause };
    this.#untold.delete(requestId);
    this.#lastWords.set(waiter, message);
    this.#send(workerId, message, (untold) => {
      // Without either, a worker works for nobody or waits for nothing; that a caller is behind is said again anyway.
      if (action !== 'pause' && this.#lastWords.get(waiter) === message) this.#untold.set(requestId, untold);
    });
  }

  /** Asks for a result up to this byte. What goes unheard is asked for again. */
  askFor({ workerId, request: { requestId }, order: { attempt } }: Waiter, upToByte: number): void {
    if (workerId !== null) this.#send(workerId, { action: 'send', requestId, attempt, upToByte });
  }

  /** Its frames up to the mark have arrived on the channel. */
  received(workerId: string, channel: string, mark: number): void {
    this.#send(workerId, { action: 'received', channel, mark });
  }

  /** Nobody waits for the request any more. */
  cancelStray(workerId: string, requestId: string): void {
    this.#send(workerId, { action: 'cancel', requestId });
  }

  /** A worker goes on for a caller who was told of Redis's outage, and would charge the whole answer. */
  async tellUntold(): Promise<void> {
    await Promise.all(Array.from(this.#untold, ([requestId, untold]) => this.#tellAgain(requestId, untold)));
  }

  async #tellAgain(requestId: string, untold: Untold): Promise<void> {
    // Where the node of one worker's channel is away, the others are told all the same.
    const isHeard = await untold.tell().catch(() => null);
    if (isHeard === null) return;
    untold.deafSinceMs ??= Date.now();
    const isDead = Date.now() - untold.deafSinceMs > deafPatienceMs;
    // Another word may have taken its place meanwhile.
    if ((isHeard || isDead) && this.#untold.get(requestId) === untold) this.#untold.delete(requestId);
  }

  #send(workerId: string, message: ControlMessage, onUntold?: (untold: Untold) => void): void {
    const tell = (): Promise<boolean> => sendControl(this.#redis, workerId, message);
    const onUnheard = (deafSinceMs: number | null, error?: unknown): void => {
      onUntold?.({ tell, deafSinceMs });
      this.#log.debug({ ...message, err: error }, 'a worker could not be told');
    };
    tell()
      .then((isHeard) => {
        if (!isHeard) onUnheard(Date.now());
      })
      .catch((error: unknown) => onUnheard(null, error));
  }
}
