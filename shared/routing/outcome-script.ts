import { RedisScript, type RedisClient } from '../redis/redis-client.ts';
import { redisKeys } from '../redis/redis-keys.ts';
import { breakerRules } from './breaker-rules.ts';
import type { CallSlot } from './acquire-script.ts';
import { cooldownFields, slotsOf } from './candidate-keys.ts';

/**
 * Releases a call's slots, counts its outcome and updates the breaker. The breaker opens if too many calls in the
 * window failed, closes after a successful probe, and stays open for longer after a failed one. The window is a ring of
 * buckets, each marked with the time that it covers.
 *
 * An open breaker blocks accounts according to their votes. An account's latest calls are its vote: it votes "failed"
 * after two failures in a row, because a single failure happens on any route. Calls that began before the breaker
 * opened do not change the vote of an account that it blocks. Once all failures have expired, the breaker closes.
 *
 * A vendor may have rejected a key because of what one account requested. The key then goes on cooldown only for that
 * account. It goes on cooldown for all accounts if it was rejected for several and they outnumber those served with it
 * recently.
 *
 * A holder that was declared dead holds no slots, and its outcomes do not count.
 *
 * A failure that the request itself may have caused does not count if the route served other calls at that time.
 *
 * Returns the state change of the breaker, and the accounts for which the key went on cooldown.
 */
const outcomeScript = new RedisScript(`
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local health, cooldowns, servedAccounts, failedAccounts, struckAccounts = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local servedWithKey, refusedAccounts = KEYS[6], KEYS[7]
local lease, outcome, probe = ARGV[1], ARGV[2], ARGV[3] == '1'
local field, scope, reason = ARGV[4], ARGV[5], ARGV[6]
local forMs, forAccountMs, calls = tonumber(ARGV[7]), tonumber(ARGV[8]), tonumber(ARGV[9])
local unlessServedForMs = tonumber(ARGV[11])
local accounts = {}
for i = 12, #ARGV do accounts[#accounts + 1] = ARGV[i] end
local bucketMs, buckets = ${breakerRules.bucketMs}, ${breakerRules.buckets}
local firstPauseMs, maxPauseMs = ${breakerRules.firstPauseMs}, ${breakerRules.maxPauseMs}
local minAccounts, failedMs, retentionMs = ${breakerRules.minAccounts}, ${breakerRules.failedMs}, ${breakerRules.retentionMs}
local windowMs = bucketMs * buckets
for i = 9, #KEYS do redis.call('ZREM', KEYS[i], lease) end
if not redis.call('ZSCORE', KEYS[8], ARGV[10]) then return { 'same', 'nobody' } end

local function extendExpiry(key, ms)
  if redis.call('PTTL', key) < ms then redis.call('PEXPIRE', key, string.format('%.0f', ms)) end
end
local function removeOld(votes, ms) redis.call('ZREMRANGEBYSCORE', votes, '-inf', now - ms) end
local function startCooldown(name, ms)
  local untilMs = now + ms
  local known = redis.call('HGET', cooldowns, name)
  if not known or tonumber(string.match(known, '^%d+')) < untilMs then
    redis.call('HSET', cooldowns, name, string.format('%.0f', untilMs) .. ' ' .. reason)
  end
  extendExpiry(cooldowns, ms)
end
local function startKeyCooldown()
  if scope ~= 'key' then
    for _, account in ipairs(accounts) do
      redis.call('ZADD', refusedAccounts, 'GT', now + forAccountMs, account)
      redis.call('ZREM', servedWithKey, account)
    end
    removeOld(refusedAccounts, windowMs)
    extendExpiry(refusedAccounts, forAccountMs + windowMs)
    local refused = redis.call('ZCARD', refusedAccounts)
    if refused < minAccounts or refused <= redis.call('ZCOUNT', servedWithKey, now - windowMs, now) then
      startCooldown('some ' .. field, forAccountMs)
      return 'accounts'
    end
  end
  startCooldown(field, forMs)
  return 'all'
end
local cooldownFor = field == '' and 'nobody' or startKeyCooldown()

if unlessServedForMs and redis.call('ZCOUNT', servedAccounts, now - unlessServedForMs - ${breakerRules.servedMs}, now) > 0 then
  outcome = 'none'
end

local bucket = math.floor(now / bucketMs)
local index = bucket % buckets
local function countOutcome()
  if tonumber(redis.call('HGET', health, 'at:' .. index) or '-1') ~= bucket then
    redis.call('HSET', health, 'at:' .. index, bucket, 'ok:' .. index, 0, 'bad:' .. index, 0, 'limited:' .. index, 0)
  end
  redis.call('HINCRBY', health, outcome .. ':' .. index, calls)
  redis.call('PEXPIRE', health, retentionMs)
end
if outcome == 'none' or outcome == 'limited' then
  if probe then redis.call('HDEL', health, 'probe') end
  if outcome == 'limited' then countOutcome() end
  return { 'same', cooldownFor }
end

local openUntil = tonumber(redis.call('HGET', health, 'until') or '0')
if openUntil > 0 then
  removeOld(failedAccounts, failedMs)
  if redis.call('ZCARD', failedAccounts) == 0 then
    redis.call('HDEL', health, 'until', 'probe', 'pauses', 'failedAt')
    openUntil = 0
  end
end
-- A probe whose response started well has already closed the breaker.
probe = probe and openUntil > 0
local function addVote(votes, account, lifetimeMs)
  redis.call('ZADD', votes, now, account)
  extendExpiry(votes, lifetimeMs)
end
-- Whether the vote was added within the last second.
local function isRecent(votes, account)
  local at = tonumber(redis.call('ZSCORE', votes, account) or '0')
  return at <= now and at > now - 1000
end
local function recordSuccess(account)
  -- The success is already recorded: a later failure would have removed it.
  if isRecent(servedAccounts, account) and isRecent(servedWithKey, account) then return end
  removeOld(servedAccounts, windowMs)
  removeOld(servedWithKey, windowMs)
  addVote(servedWithKey, account, windowMs)
  local refusedUntil = redis.call('ZSCORE', refusedAccounts, account)
  if refusedUntil and tonumber(refusedUntil) <= now then redis.call('ZREM', refusedAccounts, account) end
  if openUntil > 0 and not probe and redis.call('ZSCORE', failedAccounts, account) then return end
  addVote(servedAccounts, account, windowMs)
  redis.call('ZREM', failedAccounts, account)
  redis.call('ZREM', struckAccounts, account)
end
local function recordFailure(account)
  redis.call('ZREM', servedAccounts, account)
  local isAgain = redis.call('ZREM', struckAccounts, account) == 1 or redis.call('ZSCORE', failedAccounts, account)
  if probe or isAgain then addVote(failedAccounts, account, failedMs)
  else addVote(struckAccounts, account, windowMs) end
end
if outcome == 'ok' then
  for _, account in ipairs(accounts) do recordSuccess(account) end
else
  removeOld(failedAccounts, failedMs)
  removeOld(struckAccounts, windowMs)
  for _, account in ipairs(accounts) do recordFailure(account) end
end
if probe then
  if outcome == 'ok' then
    redis.call('DEL', health, failedAccounts, struckAccounts)
    return { 'closed', cooldownFor }
  end
  redis.call('HDEL', health, 'probe')
  redis.call('HSET', health, 'failedAt', now)
  -- Accounts that have not failed may probe before the pause ends.
  if openUntil <= now or openUntil > now + maxPauseMs then
    local pauses = redis.call('HINCRBY', health, 'pauses', 1)
    local pauseMs = math.min(maxPauseMs, firstPauseMs * 2 ^ math.min(pauses - 1, 20))
    redis.call('HSET', health, 'until', string.format('%.0f', now + pauseMs))
  end
  redis.call('PEXPIRE', health, retentionMs)
  return { 'open', cooldownFor }
end
countOutcome()
if outcome == 'ok' or openUntil > 0 or redis.call('ZCARD', failedAccounts) == 0 then return { 'same', cooldownFor } end
local ok, bad = 0, 0
for i = 0, buckets - 1 do
  local counts = redis.call('HMGET', health, 'at:' .. i, 'ok:' .. i, 'bad:' .. i)
  if counts[1] and tonumber(counts[1]) > bucket - buckets and tonumber(counts[1]) <= bucket then
    ok, bad = ok + tonumber(counts[2]), bad + tonumber(counts[3])
  end
end
if ok + bad < ${breakerRules.minCalls} or bad * 100 < (ok + bad) * ${breakerRules.failedPercent} then
  return { 'same', cooldownFor }
end
redis.call('HSET', health, 'until', string.format('%.0f', now + firstPauseMs), 'pauses', 1, 'failedAt', now)
return { 'opened', cooldownFor }
`);

/**
 * What a call's outcome says about its route. `bad` is a server failure. `limited` is a key over its rate limit,
 * counted only for display. `none` says nothing about the route: the caller disconnected, or the key or the request
 * caused the failure.
 */
export type CallOutcome = 'ok' | 'bad' | 'limited' | 'none';

/** Puts a key on cooldown: everywhere, or on this route only. */
export interface KeyCooldown {
  /**
   * A `keyOnRoute` cooldown may be caused by the content of a request. Other accounts may then keep using the key.
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
  /** The accounts for which the key went on cooldown: none, those of the call, or all. */
  readonly cooldownFor: 'nobody' | 'accounts' | 'all';
}

/** How a call ended. */
export interface CallEnd {
  readonly outcome: CallOutcome;
  readonly cooldown: KeyCooldown | null;
  /** The accounts whose requests the call served. */
  readonly accountIds: readonly string[];
  /** The outcome does not count if the route served a call within this time, or shortly before. By default, it counts. */
  readonly unlessServedForMs?: number | null;
}

/** Maximum accounts recorded per call. */
const maxRecordedAccounts = 1_000;

/**
 * Ends a granted call, in one round trip.
 * @param calls how many calls had this outcome, one after the other, in the same slot
 */
export async function runOutcome(
  redis: RedisClient,
  { candidate, lease, holder, isProbe }: CallSlot,
  { outcome, cooldown, accountIds, unlessServedForMs = null }: CallEnd,
  calls = 1,
): Promise<OutcomeResult> {
  const { route, fingerprint } = candidate;
  const slots = slotsOf(candidate);
  const taken = slots.keys.filter((_, i) => slots.limits[i]! > 0);
  const [breaker, cooldownFor] = (await outcomeScript.run(
    redis,
    [
      redisKeys.routeHealth(route.id),
      redisKeys.keysOnCooldown(route.upstream.name),
      redisKeys.accountsServedOnRoute(route.id),
      redisKeys.accountsFailedOnRoute(route.id),
      redisKeys.accountsStruckOnRoute(route.id),
      redisKeys.accountsServedWithKey(route.id, fingerprint),
      redisKeys.accountsRejectedWithKey(route.id, fingerprint),
      redisKeys.slotHolders,
      ...taken,
    ],
    [
      lease,
      outcome,
      isProbe ? 1 : 0,
      cooldown === null ? '' : cooldownFields(candidate)[cooldown.scope],
      cooldown?.scope ?? '',
      cooldown?.reason ?? '',
      Math.ceil(cooldown?.forMs ?? 0),
      Math.ceil(cooldown?.forAccountMs ?? cooldown?.forMs ?? 0),
      calls,
      holder,
      unlessServedForMs === null ? '' : Math.ceil(unlessServedForMs),
      ...accountIds.slice(0, maxRecordedAccounts),
    ],
  )) as [BreakerChange, OutcomeResult['cooldownFor']];
  return { breaker, cooldownFor };
}

const confirmScript = new RedisScript(`
if not redis.call('ZSCORE', KEYS[4], ARGV[1]) or redis.call('HEXISTS', KEYS[1], 'until') == 0 then return 0 end
redis.call('DEL', KEYS[1], KEYS[2], KEYS[3])
return 1
`);

/**
 * Closes the breaker when the vendor's response to the probe starts well. @returns whether the breaker was still open
 */
export async function confirmProbe(redis: RedisClient, { candidate, holder }: CallSlot): Promise<boolean> {
  const { id } = candidate.route;
  const keys = [
    redisKeys.routeHealth(id),
    redisKeys.accountsFailedOnRoute(id),
    redisKeys.accountsStruckOnRoute(id),
    redisKeys.slotHolders,
  ];
  return (await confirmScript.run(redis, keys, [holder])) === 1;
}
