import { redisKeys, shardCount } from '../../../shared/platform/redis/redis-keys.ts';
import type { RedisClient } from '../../../shared/platform/redis/redis-client.ts';
import { parseStreamId } from '../../../shared/ledger/usage-event.ts';
import type { LedgerReading } from './system-reading.ts';

const shards = Array.from({ length: shardCount }, (_, shard) => redisKeys.ledgerStream(shard));

/**
 * Reads how far the ledger in MongoDB is behind. Entries leave their stream once they are in MongoDB. One round trip.
 * @param nowMs Redis's time
 */
export async function readLedgerLag(redis: RedisClient, nowMs: Promise<number>): Promise<LedgerReading> {
  const [now, lengths, firsts] = await Promise.all([
    nowMs,
    Promise.all(shards.map((stream) => redis.xlen(stream))),
    Promise.all(shards.map((stream) => redis.xrange(stream, '-', '+', 'COUNT', 1))),
  ]);
  const ages = firsts.flatMap(([first]) => (first === undefined ? [] : [now - parseStreamId(first[0]).ms]));
  return {
    entries: lengths.reduce((sum, length) => sum + length, 0),
    maxShardEntries: Math.max(...lengths),
    // An id may be ahead of the clock.
    oldestMs: Math.max(0, ...ages),
  };
}
