import type { RedisClient } from '../../shared/platform/redis/redis-client.ts';
import { shardCount } from '../../shared/platform/redis/redis-keys.ts';
import { LeaseTaker } from './lease-taker.ts';
import { Lease } from './lease.ts';

/** One lease per shard, so that each shard is handled by one worker at a time. */
export class ShardLeases {
  readonly #leases: readonly Lease[];

  /** @param keyOf returns the Redis key of a shard's lease for one kind of work */
  constructor(redis: RedisClient, workerId: string, keyOf: (shard: number) => string) {
    const taker = new LeaseTaker(redis, workerId);
    this.#leases = Array.from(
      { length: shardCount },
      (_, shard) => new Lease(redis, workerId, keyOf(shard), taker),
    );
  }

  /** @returns whether this worker now holds the lease */
  async take(shard: number): Promise<boolean> {
    return await this.#leases[shard]!.take();
  }

  /** Makes the next `take` ask Redis, because another worker seems to hold the lease too. */
  doubt(shard: number): void {
    this.#leases[shard]!.doubt();
  }

  async release(shard: number): Promise<void> {
    await this.#leases[shard]!.release();
  }
}
