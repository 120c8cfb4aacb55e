import type { RedisClient } from '../../shared/redis/redis-client.ts';
import { sendControl, type CancelCause, type ControlMessage } from '../../shared/reply/reply-channel.ts';
import type { Logger } from '../../shared/runtime/logger.ts';
import type { Waiter } from './waiter.ts';

export type WaiterControl = 'pause' | 'resume' | 'cancel';

/** What this process tells the workers that run its requests. A worker that is not told goes on by itself. */
export class WorkerControls {
  readonly #redis: RedisClient;
  readonly #log: Logger;
  /** Tells workers that could not be told to stop, by request: Redis was away. */
  readonly #untold = new Map<string, () => Promise<void>>();

  constructor(redis: RedisClient, log: Logger) {
    this.#redis = redis;
    this.#log = log;
  }

  get hasUntold(): boolean {
    return this.#untold.size > 0;
  }

  /** @param cause of a cancel */
  control({ workerId, request }: Waiter, action: WaiterControl, cause: CancelCause = {}): void {
    if (workerId === null) return;
    const { requestId } = request;
    const message: ControlMessage = { action, requestId, ...cause };
    this.#send(workerId, message, (tell) => {
      if (action === 'cancel') this.#untold.set(requestId, tell);
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
    for (const [requestId, tell] of this.#untold) {
      await tell();
      this.#untold.delete(requestId);
    }
  }

  #send(workerId: string, message: ControlMessage, onUntold?: (tell: () => Promise<void>) => void): void {
    const tell = (): Promise<void> => sendControl(this.#redis, workerId, message);
    tell().catch((error: unknown) => {
      onUntold?.(tell);
      this.#log.debug({ ...message, err: error }, 'a worker could not be told');
    });
  }
}
