import type { Logger } from '../../platform/runtime/logger.ts';
import { callRedis, type RedisClient } from '../../platform/redis/redis-client.ts';
import { redisKeys } from '../../platform/redis/redis-keys.ts';

/** How long a payload outlives its reader's start deadline. It must not expire before the reader can read it. */
const lifetimeSeconds = 30 * 60;

const chunkBytes = 512 * 1024;

/** Bodies that are too large for a queue item or a frame. */
export class PayloadStore {
  readonly #redis: RedisClient;
  readonly #log: Logger;

  constructor(redis: RedisClient, log: Logger) {
    this.#redis = redis;
    this.#log = log;
  }

  /** @param deadlineAtMs when its reader must have started */
  async put(id: string, bytes: Buffer, deadlineAtMs = 0): Promise<void> {
    const waitSeconds = Math.max(0, Math.ceil((deadlineAtMs - Date.now()) / 1_000));
    const seconds = lifetimeSeconds + waitSeconds;
    await callRedis(() => this.#redis.set(redisKeys.payload(id), bytes, 'EX', seconds));
  }

  /**
   * Reads a payload in chunks, so that only a little of a large one is ever in memory or on the connection at once.
   * Yields nothing if it is gone. Reading does not delete it: a job that runs again needs its input again.
   */
  read(id: string): AsyncGenerator<Buffer> {
    return this.readKey(redisKeys.payload(id));
  }

  /** Like `read`, for any key. */
  async *readKey(key: string): AsyncGenerator<Buffer> {
    for (let from = 0, length = chunkBytes; length === chunkBytes; from += length) {
      const chunk = await callRedis(() => this.#redis.getrangeBuffer(key, from, from + chunkBytes - 1));
      length = chunk.length;
      if (length > 0) yield chunk;
    }
  }

  /**
   * Deletes a payload in the background. Callers neither wait for this nor see a failure, because the payload expires
   * anyway.
   */
  drop(id: string): void {
    callRedis(() => this.#redis.unlink(redisKeys.payload(id))).catch((error: unknown) => {
      this.#log.debug({ payload: id, err: error }, 'payload deletion failed; it expires anyway');
    });
  }
}
