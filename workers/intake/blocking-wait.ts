import { callRedis, type RedisClient } from '../../shared/platform/redis/redis-client.ts';
import type { Logger } from '../../shared/platform/runtime/logger.ts';

const repeatMs = 50;

/**
 * Ends a blocking command early, as if it had timed out, so that a worker that is asked to stop does not wait for it. The
 * connection stays open: Redis might have just taken an item for it.
 */
export class BlockingWait {
  readonly #blocking: RedisClient;
  readonly #redis: RedisClient;
  readonly #log: Logger;
  #connectionId: number | null = null;

  /**
   * @param blocking the connection that waits
   * @param redis another connection to the same server
   */
  constructor(blocking: RedisClient, redis: RedisClient, log: Logger) {
    this.#blocking = blocking;
    this.#redis = redis;
    this.#log = log;
    blocking.on('close', () => {
      this.#connectionId = null;
    });
  }

  /** Call this before each blocking command. On a Cluster it does nothing, and waits are not ended early. */
  async prepare(): Promise<void> {
    if (this.#connectionId !== null || this.#blocking.isCluster) return;
    this.#connectionId = await callRedis(() => this.#blocking.client('ID'));
  }

  /** Ends the command until `ended` is fulfilled: it may be sent a moment later. Never rejects. */
  async end(ended: Promise<unknown>): Promise<void> {
    const unblock = async (): Promise<void> => {
      if (this.#connectionId === null) return;
      await this.#redis.client('UNBLOCK', this.#connectionId);
    };
    const tryToUnblock = (): void => {
      unblock().catch((error: unknown) => this.#log.debug({ err: error }, 'ending a blocking wait failed'));
    };
    tryToUnblock();
    const timer = setInterval(tryToUnblock, repeatMs);
    await ended;
    clearInterval(timer);
  }
}
