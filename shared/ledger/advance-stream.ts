import { redisKeys } from '../redis/redis-keys.ts';
import { RedisScript, type RedisClient } from '../redis/redis-client.ts';
import { formatStreamId, type StreamId } from './usage-event.ts';

/** Lua: returns whether one stream id is later than another. */
export const isLaterId = `
local function isLaterId(one, other)
  local function split(id)
    local ms, seq = string.match(id, '^(%d+)-(%d+)$')
    return tonumber(ms), tonumber(seq)
  end
  local ms, seq = split(one)
  local otherMs, otherSeq = split(other)
  return ms > otherMs or (ms == otherMs and seq > otherSeq)
end`;

/**
 * Lua: advances a stream that ends before the last entry that MongoDB has applied, which means that Redis has lost
 * entries. The stream continues after that position, so that no new entry is mistaken for one already applied. Also
 * blocks account restores for two seconds, so that a reader's last batch from before the loss reaches MongoDB first.
 * Returns whether the stream was advanced.
 */
export const advanceStream = `
local function advanceStream(stream, recovering, checkpoint)
  if checkpoint == '0-0' then return false end
  local mark = redis.pcall('XADD', stream, checkpoint, 'kind', 'mark')
  if type(mark) ~= 'string' then return false end
  redis.call('XDEL', stream, mark)
  redis.call('SET', recovering, '1', 'PX', 2000)
  return true
end`;

const advanceScript = new RedisScript(`${advanceStream}
return advanceStream(KEYS[1], KEYS[2], ARGV[1]) and 1 or 0
`);

/**
 * Sets Redis's trim position of a shard's ledger to MongoDB's checkpoint, after lost entries have been restored.
 * Another reader may have advanced further in the meantime, so the position is never moved back.
 */
const advanceTrimScript = new RedisScript(`${isLaterId}${advanceStream}
advanceStream(KEYS[1], KEYS[2], ARGV[1])
if isLaterId(ARGV[1], redis.call('GET', KEYS[3]) or '0-0') then redis.call('SET', KEYS[3], ARGV[1]) end
return 1
`);

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
  const keys = [redisKeys.ledgerStream(shard), redisKeys.ledgerRecovering(shard)];
  await advanceScript.run(redis, keys, [formatStreamId(end)]);
}

/** Call this once all lost entries are restored in Redis. */
export async function advanceTrimPosition(
  redis: RedisClient,
  shard: number,
  checkpoint: StreamId,
): Promise<void> {
  const keys = [
    redisKeys.ledgerStream(shard),
    redisKeys.ledgerRecovering(shard),
    redisKeys.ledgerTrimmed(shard),
  ];
  await advanceTrimScript.run(redis, keys, [formatStreamId(checkpoint)]);
}
