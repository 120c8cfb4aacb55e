import { redisKeys } from '../../shared/platform/redis/redis-keys.ts';
import { LuaScript } from '../../shared/platform/redis/lua-script.ts';
import type { RedisClient } from '../../shared/platform/redis/redis-client.ts';
import { formatStreamId, type StreamId } from '../../shared/ledger/usage-event.ts';

const advanceScript = new LuaScript(new URL('./advance-shard.lua', import.meta.url), [
  'stream',
  'recovering',
  'checkpoint',
]);
const advanceTrimScript = new LuaScript(new URL('./advance-trim-position.lua', import.meta.url), [
  'stream',
  'recovering',
  'trimmed',
  'checkpoint',
]);

/**
 * Whether Redis has lost entries that MongoDB has applied. Called when Redis's trim position is older than the
 * checkpoint: an entry that has not been trimmed must still be in the stream. A reader that died between writing its
 * checkpoint and trimming left the entry there.
 */
export async function hasLostEntries(
  redis: RedisClient,
  shard: number,
  checkpoint: StreamId,
): Promise<boolean> {
  const id = formatStreamId(checkpoint);
  return (await redis.xrange(redisKeys.ledgerStream(shard), id, id)).length === 0;
}

/**
 * Advances a shard's stream. Call this before restoring several accounts. Otherwise each account whose sums end later
 * than those restored before it would have to wait again.
 */
export async function advanceShard(redis: RedisClient, shard: number, end: StreamId): Promise<void> {
  await advanceScript.run(redis, {
    stream: redisKeys.ledgerStream(shard),
    recovering: redisKeys.ledgerRecovering(shard),
    checkpoint: formatStreamId(end),
  });
}

/**
 * Sets Redis's trim position of a shard's ledger to MongoDB's checkpoint. Call this once all lost entries are restored in
 * Redis.
 */
export async function advanceTrimPosition(
  redis: RedisClient,
  shard: number,
  checkpoint: StreamId,
): Promise<void> {
  await advanceTrimScript.run(redis, {
    stream: redisKeys.ledgerStream(shard),
    recovering: redisKeys.ledgerRecovering(shard),
    trimmed: redisKeys.ledgerTrimmed(shard),
    checkpoint: formatStreamId(checkpoint),
  });
}
