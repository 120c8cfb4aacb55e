import type { RedisClient } from '../../shared/redis/redis-client.ts';
import { shardCount } from '../../shared/redis/redis-keys.ts';
import { Lease } from './lease.ts';

/** The shards that this worker looks after; each shard has one worker. */
export class ShardLeases {
  readonly #leases: readonly Lease[];

  /** @param keyOf names the leases of one kind of work */
  constructor(redis: RedisClient, workerId: string, keyOf: (shard: number) => string) {
    this.#leases = Array.from({ length: shardCount }, (_, shard) => new Lease(redis, workerId, keyOf(shard)));
  }

  /** @returns whether this worker holds the lease now */
  async take(shard: number): Promise<boolean> {
    return await this.#leases[shard]!.take();
  }

  async release(shard: number): Promise<void> {
    await this.#leases[shard]!.release();
  }
}
