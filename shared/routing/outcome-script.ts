import { RedisScript, type RedisClient } from '../redis/redis-client.ts';
import { redisKeys } from '../redis/redis-keys.ts';
import { breakerRules } from './breaker-rules.ts';
import type { CallSlot } from './acquire-script.ts';
import { cooldownFields, slotsOf } from './candidate-keys.ts';

/**
 * Releases a call's slots, counts its outcome and moves the breaker. The breaker opens if too much of the window
 * failed, closes after a successful probe, and stays open for longer after a failed one. The window is a ring of
 * buckets, each marked with the time it stands for.
 *
 * The votes of accounts decide whom an open breaker blocks. An account's latest calls are its vote: it counts as failed
 * after two failures in a row, since a single one happens on any route. Calls that began before the breaker opened do
 * not change the vote of an account that it blocks. Once all failures have expired, the breaker is closed.
 *
 * A key may have been refused because of what one account requested. It then goes on cooldown for that account only. It
 * goes on cooldown for all accounts if several were refused, and more than were recently served with it.
 *
 * Returns what became of the breaker, and for whom the key went on cooldown.
 */
const outcomeScript = new RedisScript(`
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local health, setAside, servedOn, failedOn, struckOn = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local servedBy, refusedTo = KEYS[6], KEYS[7]
local lease, verdict, probe = ARGV[1], ARGV[2], ARGV[3] == '1'
local field, scope, reason = ARGV[4], ARGV[5], ARGV[6]
local forMs, forAccountMs = tonumber(ARGV[7]), tonumber(ARGV[8])
local accounts = {}
for i = 9, #ARGV do accounts[#accounts + 1] = ARGV[i] end
local bucketMs, buckets = ${breakerRules.bucketMs}, ${breakerRules.buckets}
local firstPauseMs, longestPauseMs = ${breakerRules.firstPauseMs}, ${breakerRules.longestPauseMs}
local leastAccounts, failedMs, forgottenMs = ${breakerRules.leastAccounts}, ${breakerRules.failedMs}, ${breakerRules.forgottenAfterMs}
local windowMs = bucketMs * buckets
for i = 8, #KEYS do redis.call('ZREM', KEYS[i], lease) end

local function keepFor(key, ms)
  if redis.call('PTTL', key) < ms then redis.call('PEXPIRE', key, string.format('%.0f', ms)) end
end
local function forget(votes, ms) redis.call('ZREMRANGEBYSCORE', votes, '-inf', now - ms) end
local function putAside(name, ms)
  local untilMs = now + ms
  local known = redis.call('HGET', setAside, name)
  if not known or tonumber(string.match(known, '^%d+')) < untilMs then
    redis.call('HSET', setAside, name, string.format('%.0f', untilMs) .. ' ' .. reason)
  end
  keepFor(setAside, ms)
end
local function setKeyAside()
  if scope ~= 'key' then
    for _, account in ipairs(accounts) do
      redis.call('ZADD', refusedTo, 'GT', now + forAccountMs, account)
      redis.call('ZREM', servedBy, account)
    end
    forget(refusedTo, windowMs)
    keepFor(refusedTo, forAccountMs + windowMs)
    local refused = redis.call('ZCARD', refusedTo)
    if refused < leastAccounts or refused <= redis.call('ZCOUNT', servedBy, now - windowMs, now) then
      putAside('some ' .. field, forAccountMs)
      return 'accounts'
    end
  end
  putAside(field, forMs)
  return 'all'
end
local aside = field == '' and 'nobody' or setKeyAside()

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
  return { 'same', aside }
end

local openUntil = tonumber(redis.call('HGET', health, 'until') or '0')
if openUntil > 0 then
  forget(failedOn, failedMs)
  if redis.call('ZCARD', failedOn) == 0 then
    redis.call('HDEL', health, 'until', 'probe', 'pauses', 'failedAt')
    openUntil = 0
  end
end
-- One that was said to answer well has closed the breaker already.
probe = probe and openUntil > 0
local function note(votes, account, keepMs)
  redis.call('ZADD', votes, now, account)
  keepFor(votes, keepMs)
end
local function isNoted(votes, account)
  local at = tonumber(redis.call('ZSCORE', votes, account) or '0')
  return at <= now and at > now - 1000
end
local function noteOk(account)
  -- A failure since then would have taken it out.
  if isNoted(servedOn, account) and isNoted(servedBy, account) then return end
  forget(servedOn, windowMs)
  forget(servedBy, windowMs)
  note(servedBy, account, windowMs)
  local refusedUntil = redis.call('ZSCORE', refusedTo, account)
  if refusedUntil and tonumber(refusedUntil) <= now then redis.call('ZREM', refusedTo, account) end
  if openUntil > 0 and not probe and redis.call('ZSCORE', failedOn, account) then return end
  note(servedOn, account, windowMs)
  redis.call('ZREM', failedOn, account)
  redis.call('ZREM', struckOn, account)
end
local function noteBad(account)
  redis.call('ZREM', servedOn, account)
  local isAgain = redis.call('ZREM', struckOn, account) == 1 or redis.call('ZSCORE', failedOn, account)
  if probe or isAgain then note(failedOn, account, failedMs)
  else note(struckOn, account, windowMs) end
end
if verdict == 'ok' then
  for _, account in ipairs(accounts) do noteOk(account) end
else
  forget(failedOn, failedMs)
  forget(struckOn, windowMs)
  for _, account in ipairs(accounts) do noteBad(account) end
end
if probe then
  if verdict == 'ok' then
    redis.call('DEL', health, failedOn, struckOn)
    return { 'closed', aside }
  end
  redis.call('HDEL', health, 'probe')
  redis.call('HSET', health, 'failedAt', now)
  -- Accounts that did not fail yet are let probe before its pause is over.
  if openUntil <= now or openUntil > now + longestPauseMs then
    local pauses = redis.call('HINCRBY', health, 'pauses', 1)
    local pauseMs = math.min(longestPauseMs, firstPauseMs * 2 ^ math.min(pauses - 1, 20))
    redis.call('HSET', health, 'until', string.format('%.0f', now + pauseMs))
  end
  redis.call('PEXPIRE', health, forgottenMs)
  return { 'open', aside }
end
count()
if verdict == 'ok' or openUntil > 0 or redis.call('ZCARD', failedOn) == 0 then return { 'same', aside } end
local ok, bad = 0, 0
for i = 0, buckets - 1 do
  local counts = redis.call('HMGET', health, 'at:' .. i, 'ok:' .. i, 'bad:' .. i)
  if counts[1] and tonumber(counts[1]) > bucket - buckets and tonumber(counts[1]) <= bucket then
    ok, bad = ok + tonumber(counts[2]), bad + tonumber(counts[3])
  end
end
if ok + bad < ${breakerRules.leastCalls} or bad * 100 < (ok + bad) * ${breakerRules.failedPercent} then
  return { 'same', aside }
end
redis.call('HSET', health, 'until', string.format('%.0f', now + firstPauseMs), 'pauses', 1, 'failedAt', now)
return { 'opened', aside }
`);

/**
 * The outcome of a call, for its route. `bad` is a server failure. `limited` is a key over its rate limit, counted only
 * for display. `none` says nothing about the route: the caller left, the key is at fault, or the request caused the
 * failure.
 */
export type CallOutcome = 'ok' | 'bad' | 'limited' | 'none';

/** Puts a key on cooldown: everywhere, or on this route only. */
export interface KeyCooldown {
  /**
   * A `keyOnRoute` cooldown may be due to what was requested. Accounts that did not request it may then keep using the
   * key.
   */
  readonly scope: 'key' | 'keyOnRoute';
  readonly forMs: number;
  /** Duration if the cooldown applies only to the call's accounts; `forMs` by default. */
  readonly forAccountMs?: number;
  /** Short and without secrets; operators read it. */
  readonly reason: string;
}

/** `open`: a probe failed, and the breaker stays open for longer. */
export type BreakerChange = 'same' | 'opened' | 'open' | 'closed';

export interface OutcomeResult {
  readonly breaker: BreakerChange;
  /** For whom the key went on cooldown: nobody, the accounts of the call, or all. */
  readonly setAsideFor: 'nobody' | 'accounts' | 'all';
}

/** Only this many accounts of one call are recorded. */
const maxAccountsNoted = 1_000;

/**
 * Ends a granted call, in one round trip.
 * @param accountIds the accounts that the call was made for
 */
export async function runOutcome(
  redis: RedisClient,
  { candidate, lease, isProbe }: CallSlot,
  verdict: CallOutcome,
  cooldown: KeyCooldown | null,
  accountIds: readonly string[],
): Promise<OutcomeResult> {
  const { route, fingerprint } = candidate;
  const slots = slotsOf(candidate);
  const taken = slots.keys.filter((_, i) => slots.limits[i]! > 0);
  const [breaker, setAsideFor] = (await outcomeScript.run(
    redis,
    [
      redisKeys.routeHealth(route.id),
      redisKeys.keysOnCooldown(route.upstream.name),
      redisKeys.servedOn(route.id),
      redisKeys.failedOn(route.id),
      redisKeys.struckOn(route.id),
      redisKeys.servedBy(route.id, fingerprint),
      redisKeys.refusedTo(route.id, fingerprint),
      ...taken,
    ],
    [
      lease,
      verdict,
      isProbe ? 1 : 0,
      cooldown === null ? '' : cooldownFields(candidate)[cooldown.scope],
      cooldown?.scope ?? '',
      cooldown?.reason ?? '',
      Math.ceil(cooldown?.forMs ?? 0),
      Math.ceil(cooldown?.forAccountMs ?? cooldown?.forMs ?? 0),
      ...accountIds.slice(0, maxAccountsNoted),
    ],
  )) as [BreakerChange, OutcomeResult['setAsideFor']];
  return { breaker, setAsideFor };
}

const confirmScript = new RedisScript(`
if redis.call('HEXISTS', KEYS[1], 'until') == 0 then return 0 end
redis.call('DEL', KEYS[1], KEYS[2], KEYS[3])
return 1
`);

/**
 * Closes the breaker when the vendor starts to respond well to its probe. @returns whether the breaker was still open
 */
export async function confirmProbe(redis: RedisClient, { candidate }: CallSlot): Promise<boolean> {
  const { id } = candidate.route;
  const keys = [redisKeys.routeHealth(id), redisKeys.failedOn(id), redisKeys.struckOn(id)];
  return (await confirmScript.run(redis, keys, [])) === 1;
}
