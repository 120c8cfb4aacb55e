import { ledgerStreamBound } from '../money/admit-script.ts';
import { redisKeys, shardCount } from '../platform/redis/redis-keys.ts';
import type { RedisClient } from '../platform/redis/redis-client.ts';
import { parseStreamId } from '../ledger/usage-event.ts';

export interface LedgerReading {
  /** Entries of all shards that are not in MongoDB yet. */
  readonly entries: number;
  /** Entries of the shard that has most of them. */
  readonly maxShardEntries: number;
  /** The age of the oldest one (ms); 0 if there is none. */
  readonly oldestMs: number;
  /** Entries that could not be read, and that no operator has discarded. */
  readonly deadEntries: number;
}

/** Under load, entries reach MongoDB within seconds. */
const maxLagMs = 60_000;
/** Admission stops at the bound. */
const maxShardEntries = ledgerStreamBound / 2;

export const isLedgerBehind = (ledger: LedgerReading): boolean =>
  ledger.oldestMs > maxLagMs || ledger.maxShardEntries > maxShardEntries;

const shards = Array.from({ length: shardCount }, (_, shard) => shard);
const sum = (counts: readonly number[]): number => counts.reduce((all, count) => all + count, 0);

/**
 * Reads how far the ledger in MongoDB is behind. Entries leave their stream once they are in MongoDB. One round trip.
 * @param nowMs Redis's time
 */
export async function readLedgerLag(redis: RedisClient, nowMs: Promise<number>): Promise<LedgerReading> {
  const streams = shards.map((shard) => redisKeys.ledgerStream(shard));
  const [now, lengths, firsts, dead] = await Promise.all([
    nowMs,
    Promise.all(streams.map((stream) => redis.xlen(stream))),
    Promise.all(streams.map((stream) => redis.xrange(stream, '-', '+', 'COUNT', 1))),
    Promise.all(shards.map((shard) => redis.xlen(redisKeys.ledgerDead(shard)))),
  ]);
  const ages = firsts.flatMap(([first]) => (first === undefined ? [] : [now - parseStreamId(first[0]).ms]));
  return {
    entries: sum(lengths),
    maxShardEntries: Math.max(...lengths),
    // An id may be ahead of the clock.
    oldestMs: Math.max(0, ...ages),
    deadEntries: sum(dead),
  };
}
