import { randomBytes } from 'node:crypto';
import { callRedis, RedisScript, type RedisClient } from '../../shared/redis/redis-client.ts';

/** At most `limit` (1 or more) attempts within any `windowSeconds`. All keys of one call share a hash tag. */
export interface SlidingWindow {
  readonly key: string;
  readonly limit: number;
  readonly windowSeconds: number;
}

/**
 * - `take`: adds an attempt to every window, or to none of them if one is full
 * - `check`: adds nothing
 * - `count`: adds an attempt to every window, even if one is full
 */
export type WindowUse = 'take' | 'check' | 'count';

export interface FullWindow {
  /** Index of the full window; if several are full, of the one with the longest wait. */
  readonly index: number;
  /** Time until every window allows another attempt (ms), at least 1. */
  readonly waitMs: number;
}

/**
 * A window is a sorted set with one member per attempt, scored by Redis's time. It never has more members than its
 * limit: when an attempt is added to a full window, only the newest are kept, because only they determine when another
 * attempt is allowed.
 *
 * Redis's clock may step back. Attempts that are then in the future are moved to the current time, so that a step back
 * neither allows additional attempts nor locks anyone out for longer than one window.
 *
 * A repeated attempt that has a place in a window keeps that place, from then on with the time of its repetition.
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
  for _, futureMember in ipairs(redis.call('ZRANGEBYSCORE', key, '(' .. now, '+inf')) do
    redis.call('ZADD', key, now, futureMember)
  end
  local excess = redis.call('ZCARD', key) - limit
  if excess >= 0 and not redis.call('ZSCORE', key, member) then
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

/**
 * @param member names the attempt, so that its repetitions count once; by default, every attempt is a new one
 * @returns null if no window was full before this attempt
 */
export async function useSlidingWindows(
  redis: RedisClient,
  use: WindowUse,
  windows: readonly SlidingWindow[],
  member: string = randomBytes(12).toString('base64url'),
): Promise<FullWindow | null> {
  const bounds = windows.flatMap(({ limit, windowSeconds }) => [limit, windowSeconds * 1_000]);
  const keys = windows.map(({ key }) => key);
  const reply = await callRedis(() => script.run(redis, keys, [use, member, ...bounds]));
  const [index, waitMs] = (reply as readonly unknown[]).map(Number);
  return index === 0 ? null : { index: index! - 1, waitMs: waitMs! };
}
