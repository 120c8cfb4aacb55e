import { callRedis, type RedisClient } from '../redis/redis-client.ts';
import { redisKeys } from '../redis/redis-keys.ts';

/** How much longer than its reader may wait to start: a payload must not go before its reader had its chance. */
const lifetimeSeconds = 30 * 60;

const chunkBytes = 512 * 1024;

/** Binary values that are too large for a queue's item or a frame. */
export class PayloadStore {
  readonly #redis: RedisClient;

  constructor(redis: RedisClient) {
    this.#redis = redis;
  }

  /** @param deadlineAtMs by when its reader must have started */
  async put(id: string, bytes: Buffer, deadlineAtMs = 0): Promise<void> {
    const waitSeconds = Math.max(0, Math.ceil((deadlineAtMs - Date.now()) / 1_000));
    const seconds = lifetimeSeconds + waitSeconds;
    await callRedis(() => this.#redis.set(redisKeys.payload(id), bytes, 'EX', seconds));
  }

  /**
   * In chunks: of a large one there is never more than a little in memory, nor in what the connection gives at once. None
   * where it is gone. It stays: a job that runs again needs its input again.
   */
  read(id: string): AsyncGenerator<Buffer> {
    return this.readKey(redisKeys.payload(id));
  }

  /** The same of another value. */
  async *readKey(key: string): AsyncGenerator<Buffer> {
    for (let from = 0, length = chunkBytes; length === chunkBytes; from += length) {
      const chunk = await callRedis(() => this.#redis.getrangeBuffer(key, from, from + chunkBytes - 1));
      length = chunk.length;
      if (length > 0) yield chunk;
    }
  }

  async drop(id: string): Promise<void> {
    await callRedis(() => this.#redis.unlink(redisKeys.payload(id)));
  }
}
