import { RedisScript, type RedisClient } from '../../shared/redis/redis-client.ts';
import { redisKeys } from '../../shared/redis/redis-keys.ts';

const leaseMs = 5_000;

/** Takes the lease where it is free, and renews one's own; tells how far the shard's stream is trimmed. */
const takeScript = new RedisScript(`
local holder = redis.call('GET', KEYS[1])
if holder and holder ~= ARGV[1] then return false end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return redis.call('GET', KEYS[2]) or '0-0'
`);

const releaseScript = new RedisScript(`
if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) end
return 1
`);

/**
 * Which shards this worker looks after: one worker a shard. A lease saves double work and no more: whatever is done
 * under one is safe to be done by two at once.
 */
export class ShardLeases {
  readonly #redis: RedisClient;
  readonly #workerId: string;
  readonly #held = new Set<number>();

  constructor(redis: RedisClient, workerId: string) {
    this.#redis = redis;
    this.#workerId = workerId;
  }

  /** The shards whose leases were this worker's when they were last taken or renewed. */
  get held(): readonly number[] {
    return [...this.#held];
  }

  /**
   * @returns the id of the last entry that was trimmed from the shard's stream, or null where the lease is another
   * worker's now
   */
  async take(shard: number): Promise<string | null> {
    this.#held.delete(shard);
    const keys = [redisKeys.ledgerLease(shard), redisKeys.ledgerTrimmed(shard)];
    const trimmed = (await takeScript.run(this.#redis, keys, [this.#workerId, leaseMs])) as string | null;
    if (trimmed !== null) this.#held.add(shard);
    return trimmed;
  }

  async release(shard: number): Promise<void> {
    this.#held.delete(shard);
    await releaseScript.run(this.#redis, [redisKeys.ledgerLease(shard)], [this.#workerId]);
  }
}
