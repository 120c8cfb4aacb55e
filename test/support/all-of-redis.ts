import { Cluster, type Redis } from 'ioredis';
import type { RedisClient } from '../../shared/redis/redis-client.ts';

/** The nodes that hold all keys between them. */
function nodesOf(redis: RedisClient): readonly Redis[] {
  return redis instanceof Cluster ? redis.nodes('master') : [redis];
}

/** All keys of this form, on whatever node of a Cluster they are. */
export async function findKeys(redis: RedisClient, pattern: string): Promise<string[]> {
  return (await Promise.all(nodesOf(redis).map((node) => node.keys(pattern)))).flat();
}

/** What is left of a Redis that lost its memory. */
export async function forgetAll(redis: RedisClient): Promise<void> {
  await Promise.all(nodesOf(redis).map((node) => node.flushdb()));
}
