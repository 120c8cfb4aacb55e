import { RedisScript, type RedisClient } from '../redis/redis-client.ts';
import { redisKeys } from '../redis/redis-keys.ts';
import { breakerRules } from './breaker-rules.ts';
import { setAsideFields, slotsOf, type RouteGrant } from './grant-script.ts';

/**
 * Gives a call's slots back, counts how it went, and moves the breaker: open where too much of the window failed, closed
 * again by a probe that succeeded, open for longer by one that failed. The window is a ring of buckets, each marked with
 * the time it stands for. Answers what became of the breaker.
 */
const outcomeScript = new RedisScript(`
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local health, setAside = KEYS[1], KEYS[2]
local lease, verdict, probe = ARGV[1], ARGV[2], ARGV[3] == '1'
local bucketMs, buckets, leastCalls, failedPercent = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7])
local firstPauseMs, longestPauseMs, forgottenMs = tonumber(ARGV[8]), tonumber(ARGV[9]), tonumber(ARGV[10])
for i = 3, #KEYS do redis.call('ZREM', KEYS[i], lease) end
if ARGV[11] ~= '' then
  local untilMs = now + tonumber(ARGV[12])
  local known = redis.call('HGET', setAside, ARGV[11])
  if not known or tonumber(string.match(known, '^%d+')) < untilMs then
    redis.call('HSET', setAside, ARGV[11], string.format('%.0f', untilMs) .. ' ' .. ARGV[13])
  end
  if redis.call('PTTL', setAside) < tonumber(ARGV[12]) then redis.call('PEXPIRE', setAside, ARGV[12]) end
end
local bucket = math.floor(now / bucketMs)
local place = bucket % buckets
local function count()
  if tonumber(redis.call('HGET', health, 'at:' .. place) or '-1') ~= bucket then
    redis.call('HSET', health, 'at:' .. place, bucket, 'ok:' .. place, 0, 'bad:' .. place, 0, 'limited:' .. place, 0)
  end
  redis.call('HINCRBY', health, verdict .. ':' .. place, 1)
  redis.call('PEXPIRE', health, forgottenMs)
end
if verdict == 'none' or verdict == 'limited' then
  if probe then redis.call('HDEL', health, 'probe') end
  if verdict == 'limited' then count() end
  return 'same'
end
local openUntil = redis.call('HGET', health, 'until')
if openUntil then
  if not probe then return 'same' end
  if verdict == 'ok' then
    redis.call('DEL', health)
    return 'closed'
  end
  local pauses = redis.call('HINCRBY', health, 'pauses', 1)
  local pauseMs = math.min(longestPauseMs, firstPauseMs * 2 ^ math.min(pauses - 1, 20))
  redis.call('HDEL', health, 'probe')
  redis.call('HSET', health, 'until', string.format('%.0f', now + pauseMs))
  redis.call('PEXPIRE', health, forgottenMs)
  return 'open'
end
count()
if verdict == 'ok' then return 'same' end
local ok, bad = 0, 0
for i = 0, buckets - 1 do
  local counts = redis.call('HMGET', health, 'at:' .. i, 'ok:' .. i, 'bad:' .. i)
  if counts[1] and tonumber(counts[1]) > bucket - buckets and tonumber(counts[1]) <= bucket then
    ok, bad = ok + tonumber(counts[2]), bad + tonumber(counts[3])
  end
end
if ok + bad < leastCalls or bad * 100 < (ok + bad) * failedPercent then return 'same' end
redis.call('HSET', health, 'until', string.format('%.0f', now + firstPauseMs), 'pauses', 1)
return 'opened'
`);

/**
 * How a granted call went, for its route: `bad` is a failure of the server; `limited`, a key over its limit, is counted for
 * people alone; `none` says nothing of it (a caller that left, a key that is at fault).
 */
export type RouteVerdict = 'ok' | 'bad' | 'limited' | 'none';

/** A key that is not to be used for a while: for anything, or on this route alone. */
export interface SetAside {
  readonly scope: 'key' | 'keyOnRoute';
  readonly forMs: number;
  /** Short, without secrets; operators read it. */
  readonly reason: string;
}

/** `open`: a probe failed, and the breaker stays open for longer. */
export type BreakerChange = 'same' | 'opened' | 'open' | 'closed';

/** Ends a granted call, in one trip. */
export async function runOutcome(
  redis: RedisClient,
  { way, lease, isProbe }: RouteGrant,
  verdict: RouteVerdict,
  setAside: SetAside | null,
): Promise<BreakerChange> {
  const rules = breakerRules;
  const slots = slotsOf(way);
  const taken = slots.keys.filter((_, i) => slots.limits[i]! > 0);
  const field = setAside === null ? '' : setAsideFields(way)[setAside.scope];
  return (await outcomeScript.run(
    redis,
    [redisKeys.routeHealth(way.route.id), redisKeys.keysSetAside(way.route.upstream.name), ...taken],
    [
      lease,
      verdict,
      isProbe ? 1 : 0,
      rules.bucketMs,
      rules.buckets,
      rules.leastCalls,
      rules.failedPercent,
      rules.firstPauseMs,
      rules.longestPauseMs,
      rules.forgottenAfterMs,
      field,
      Math.ceil(setAside?.forMs ?? 0),
      setAside?.reason ?? '',
    ],
  )) as BreakerChange;
}

const confirmScript = new RedisScript(`
if redis.call('HEXISTS', KEYS[1], 'until') == 0 then return 0 end
return redis.call('DEL', KEYS[1])
`);

/** Closes the breaker for whose probe the vendor has begun to answer well. @returns whether it was open still */
export async function confirmProbe(redis: RedisClient, { way }: RouteGrant): Promise<boolean> {
  return (await confirmScript.run(redis, [redisKeys.routeHealth(way.route.id)], [])) === 1;
}
