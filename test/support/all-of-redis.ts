import { Cluster, type Redis } from 'ioredis';
import type { RedisClient } from '../../shared/platform/redis/redis-client.ts';

/** The nodes that together hold all keys. */
function nodesOf(redis: RedisClient): readonly Redis[] {
  return redis instanceof Cluster ? redis.nodes('master') : [redis];
}

/** All keys that match the pattern, on every node of a Cluster. */
export async function findKeys(redis: RedisClient, pattern: string): Promise<string[]> {
  return (await Promise.all(nodesOf(redis).map((node) => node.keys(pattern)))).flat();
}

/** Deletes all keys, as if Redis had lost its data. */
export async function flushAll(redis: RedisClient): Promise<void> {
  await Promise.all(nodesOf(redis).map((node) => node.flushdb()));
}
