import { callRedis, type RedisClient } from '../../shared/platform/redis/redis-client.ts';
import { redisKeys, shardCount } from '../../shared/platform/redis/redis-keys.ts';

/** What Redis has of a shard's ledger. */
export interface ShardState {
  /** The trim position; `0-0` if nothing was trimmed yet. */
  readonly trimmed: string;
  /** Whether the stream has no entries. */
  readonly isEmpty: boolean;
}

const shards = Array.from({ length: shardCount }, (_, shard) => shard);
const trimmedKeys = shards.map((shard) => redisKeys.ledgerTrimmed(shard));
const streamKeys = shards.map((shard) => redisKeys.ledgerStream(shard));
const fromStart = shards.map(() => '0-0');

/**
 * Looks at the ledgers of all shards in one round trip.
 * @returns a state for each shard; null on a Cluster, where a command cannot read keys of several nodes
 */
export async function peekShards(redis: RedisClient): Promise<readonly ShardState[] | null> {
  if (redis.isCluster) return null;
  const [trimmed, streams] = await callRedis(() =>
    Promise.all([redis.mget(trimmedKeys), redis.xread('COUNT', 1, 'STREAMS', ...streamKeys, ...fromStart)]),
  );
  const filled = new Set((streams ?? []).map(([key]) => key));
  return shards.map((shard) => ({
    trimmed: trimmed[shard] ?? '0-0',
    isEmpty: !filled.has(streamKeys[shard]!),
  }));
}
