import { redisKeys } from '../redis/redis-keys.ts';
import { RedisScript, type RedisClient } from '../redis/redis-client.ts';
import { formatStreamId, type StreamId } from './usage-event.ts';

/**
 * Lua: a stream that ends before what MongoDB has applied is one that forgot, with the Redis that held it. It goes on
 * after that, so that no entry to come is taken for one that was applied; and for a moment nobody restores an account,
 * so that a reader's last batch from before reaches MongoDB first. Says whether it had forgotten.
 */
export const wakeStream = `
local function wakeStream(stream, trimmed, recovering, checkpoint)
  if checkpoint == '0-0' then return false end
  local mark = redis.pcall('XADD', stream, checkpoint, 'kind', 'mark')
  if type(mark) ~= 'string' then return false end
  redis.call('XDEL', stream, mark)
  redis.call('SET', trimmed, checkpoint)
  redis.call('SET', recovering, '1', 'PX', 2000)
  return true
end`;

const script = new RedisScript(`${wakeStream}
if wakeStream(KEYS[1], KEYS[2], KEYS[3], ARGV[1]) then return 1 end
return 0
`);

/** @returns whether the shard's stream had forgotten what MongoDB has applied up to this checkpoint */
export async function wakeLedgerStream(
  redis: RedisClient,
  shard: number,
  checkpoint: StreamId,
): Promise<boolean> {
  const keys = [
    redisKeys.ledgerStream(shard),
    redisKeys.ledgerTrimmed(shard),
    redisKeys.ledgerRecovering(shard),
  ];
  return (await script.run(redis, keys, [formatStreamId(checkpoint)])) === 1;
}

/** The id of the last entry that the shard's stream ever had. */
export async function readLastStreamId(redis: RedisClient, shard: number): Promise<string> {
  try {
    const info = (await redis.xinfo('STREAM', redisKeys.ledgerStream(shard))) as unknown[];
    return String(info[info.indexOf('last-generated-id') + 1]);
  } catch (error) {
    if (error instanceof Error && error.message.includes('no such key')) return '0-0';
    throw error;
  }
}
