import { randomBytes } from 'node:crypto';
import { callRedis, RedisScript, type RedisClient } from '../../shared/redis/redis-client.ts';

/** At most `limit` attempts, one at least, within any `windowSeconds`. All keys of one call lie in one slot of Redis. */
export interface SlidingWindow {
  readonly key: string;
  readonly limit: number;
  readonly windowSeconds: number;
}

/**
 * - `take`: counts an attempt in every window, or in none where one is full
 * - `check`: counts nothing
 * - `count`: counts an attempt in every window, even where one is full
 */
export type WindowUse = 'take' | 'check' | 'count';

export interface FullWindow {
  /** Which of the windows is full; of several, the one that is full for longest. */
  readonly index: number;
  /** Until every window has a free slot. */
  readonly waitMs: number;
}

/**
 * A window is a sorted set: a member for each attempt, scored by Redis's time. It never holds more than its limit: of
 * attempts that are counted although it is full, the newest stay, and only those decide when it is free again.
 *
 * Redis's clock may step back. Attempts that lie ahead of it then count as made now: nobody gets attempts back by a step,
 * and nobody is shut out for longer than one window.
 */
const script = new RedisScript(`
local use, member = ARGV[1], ARGV[2]
local time = redis.call('TIME')
local nowMs = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local now = string.format('%.0f', nowMs)

local fullIndex, longestWaitMs = 0, 0
for index, key in ipairs(KEYS) do
  local limit, windowMs = tonumber(ARGV[2 * index + 1]), tonumber(ARGV[2 * index + 2])
  redis.call('ZREMRANGEBYSCORE', key, '-inf', string.format('%.0f', nowMs - windowMs))
  for _, ahead in ipairs(redis.call('ZRANGEBYSCORE', key, '(' .. now, '+inf')) do
    redis.call('ZADD', key, now, ahead)
  end
  local excess = redis.call('ZCARD', key) - limit
  if excess >= 0 then
    local freeing = redis.call('ZRANGE', key, excess, excess, 'WITHSCORES')
    local waitMs = tonumber(freeing[2]) + windowMs - nowMs
    if waitMs > longestWaitMs then fullIndex, longestWaitMs = index, waitMs end
  end
end

if use == 'count' or (use == 'take' and fullIndex == 0) then
  for index, key in ipairs(KEYS) do
    redis.call('ZADD', key, now, member)
    redis.call('ZREMRANGEBYRANK', key, 0, -1 - ARGV[2 * index + 1])
    redis.call('PEXPIRE', key, ARGV[2 * index + 2])
  end
end
return {fullIndex, longestWaitMs}
`);

/** @returns null where all windows had a free slot before this attempt */
export async function useSlidingWindows(
  redis: RedisClient,
  use: WindowUse,
  windows: readonly SlidingWindow[],
): Promise<FullWindow | null> {
  const member = randomBytes(12).toString('base64url');
  const bounds = windows.flatMap(({ limit, windowSeconds }) => [limit, windowSeconds * 1_000]);
  const keys = windows.map(({ key }) => key);
  const reply = await callRedis(() => script.run(redis, keys, [use, member, ...bounds]));
  const [index, waitMs] = (reply as readonly unknown[]).map(Number);
  return index === 0 ? null : { index: index! - 1, waitMs: waitMs! };
}
