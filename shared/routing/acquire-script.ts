import { RedisScript, type RedisClient } from '../redis/redis-client.ts';
import { redisKeys } from '../redis/redis-keys.ts';
import { breakerRules } from './breaker-rules.ts';
import { jobWaits } from './job-waits.ts';
import type { RouteCandidate } from './route-candidate.ts';
import { slotUsers } from './slot-users.ts';
import { nameLease, cooldownFields, slotsOf } from './candidate-keys.ts';
import { restorePauseMs } from './slot-holders-script.ts';

/**
 * Grants a call slot on the first candidate, in the order given, whose key is not on cooldown, whose route's breaker
 * lets a call through, and which has a free slot at its upstream, its key and its route. A slot is a lease held by the
 * account that uses it. The worker that holds it must have reported as alive; if it dies, its slots are freed. After an
 * outage of Redis, no slot is granted for a moment, so that survivors restore their leases first.
 *
 * A key may be on cooldown only for some accounts. An open breaker blocks the accounts whose calls failed; when its
 * pause ends, one of them sends the probe. If the breaker blocks all accounts, an account without failures may send the
 * probe shortly after the last failure, without waiting for the pause to end.
 *
 * The slot goes to the first account, in the order given, that is allowed to have it. While another account waits for
 * slots of the same upstream, key or route, an account gets at most half of them. The half is rounded up, so that the
 * last slot of an odd number is not left free while two accounts wait. If another account used the slots recently, an
 * account that has half leaves the last eighth free, so that the other account does not have to wait for a call to end.
 * Accounts that got no slot because none was free are recorded as waiting until they try again, or for half a second.
 *
 * Durable jobs are not limited to halves: among accounts with waiting jobs, the one that has waited longest goes next.
 *
 * Redis's clock may be set back, so times further in the future than any the scripts set are ignored.
 *
 * Returns the numbers of the candidate and of the account (from 1), whether the call is its route's probe, how many
 * more slots could have been granted, and the total number of slots. If no slot was granted, returns 0, 0, whether a
 * free slot was the only thing missing, and the milliseconds until the first key's cooldown ends and until the first
 * breaker lets a probe through; -1 for each that does not apply. Returns only -1 if the worker must report first.
 */
const acquireScript = new RedisScript(`
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local lease, leaseMs, probeMs, waitingMs = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local accounts, recentMs, isBackground = tonumber(ARGV[5]), tonumber(ARGV[6]), ARGV[7] == '1'
local aliveUntil = redis.call('ZSCORE', KEYS[#KEYS - 1], string.match(lease, '^(.*):%d+$'))
if not aliveUntil or tonumber(aliveUntil) < now then return { -1 } end
local pauseUntil = tonumber(redis.call('HGET', KEYS[#KEYS], 'pauseUntil') or '0')
if pauseUntil > now and pauseUntil <= now + ${restorePauseMs} then return { 0, 0, 1, -1, -1 } end
-- If no account waits, the result is busy, never a pause.
local keyMs, breakerMs, busy, waitingSets, fullForJobs = -1, -1, accounts == 0 and 1 or 0, {}, {}
local function sooner(known, ms)
  if known < 0 or ms < known then return ms end
  return known
end

-- Whether an account other than this one waits for slots of this set.
local function isContested(waiting, account)
  local count = redis.call('ZCOUNT', waiting, now, now + waitingMs)
  if count == 0 then return false end
  local expiresAt = tonumber(redis.call('ZSCORE', waiting, account) or '0')
  return count > 1 or expiresAt < now or expiresAt > now + waitingMs
end

-- If the clock was set back, leases of dead workers would otherwise last that much longer.
local function shortenLeases(leases)
  local longest = string.format('%.0f', now + leaseMs)
  for _, member in ipairs(redis.call('ZRANGEBYSCORE', leases, '(' .. longest, '+inf')) do
    redis.call('ZADD', leases, longest, member)
  end
end

-- How many slots of a set an account holds. Each set is read at most once, and only if accounts contend for it. A set
-- has no more leases than slots.
local heldBySet = {}
local function countHeld(leases, account)
  if not heldBySet[leases] then
    local held = {}
    for _, member in ipairs(redis.call('ZRANGE', leases, 0, -1)) do
      local holder = string.match(member, '^(.-)|')
      if holder then held[holder] = (held[holder] or 0) + 1 end
    end
    heldBySet[leases] = held
  end
  return heldBySet[leases][account] or 0
end

${slotUsers}

${jobWaits}
-- Whether so many accounts failed that the breaker blocks all accounts.
local function blocksAll(failedAccounts, servedAccounts)
  local failed = redis.call('ZCOUNT', failedAccounts, now - ${breakerRules.failedMs}, now)
  if failed < ${breakerRules.minAccounts} then return false end
  return failed > redis.call('ZCOUNT', servedAccounts, now - ${breakerRules.bucketMs * breakerRules.buckets}, now)
end

-- Returns the accounts that the breaker lets through, and which of their calls would be probes.
local function filterByBreaker(health, failedAccounts, servedAccounts, candidates)
  local breaker = redis.call('HMGET', health, 'until', 'probe', 'failedAt')
  if not breaker[1] then return candidates, {} end
  -- Milliseconds until an account may send a probe: failedPauseMs if its calls failed, otherwise unfailedPauseMs.
  local failedPauseMs, probeEndsMs = tonumber(breaker[1]) - now, tonumber(breaker[2] or '0') - now
  local unfailedPauseMs = tonumber(breaker[3] or '0') + ${breakerRules.firstPauseMs} - now
  if failedPauseMs > ${breakerRules.maxPauseMs} then failedPauseMs = 0 end
  if unfailedPauseMs > ${breakerRules.firstPauseMs} then unfailedPauseMs = 0 end
  if probeEndsMs > probeMs then probeEndsMs = 0 end
  local isForAll = blocksAll(failedAccounts, servedAccounts)
  local passed, probes, soonestMs = {}, {}, -1
  for _, a in ipairs(candidates) do
    local failedAt = tonumber(redis.call('ZSCORE', failedAccounts, ARGV[7 + a]) or '0')
    local isFailed = now - failedAt < ${breakerRules.failedMs}
    local pauseMs = isFailed and failedPauseMs or unfailedPauseMs
    if not isFailed and not isForAll then passed[#passed + 1] = a
    elseif pauseMs <= 0 and probeEndsMs <= 0 then
      passed[#passed + 1] = a
      probes[a] = 1
    else soonestMs = sooner(soonestMs, math.max(pauseMs, math.min(probeEndsMs, 100))) end
  end
  if #passed == 0 then breakerMs = sooner(breakerMs, soonestMs) end
  return passed, probes
end

-- Returns the accounts for which the key is not on cooldown.
local function filterByCooldown(cooldowns, fieldOfKey, fieldOnRoute, refusedAccounts)
  local cooldownMs, passed, soonestMs = 0, {}, -1
  for _, entry in ipairs(redis.call('HMGET', cooldowns, fieldOfKey, fieldOnRoute)) do
    local untilMs = entry and tonumber(string.match(entry, '^%d+'))
    if untilMs then cooldownMs = math.max(cooldownMs, untilMs - now) end
  end
  for a = 1, accounts do
    local refusedUntil = tonumber(redis.call('ZSCORE', refusedAccounts, ARGV[7 + a]) or '0')
    local remainingMs = math.max(cooldownMs, refusedUntil - now)
    if remainingMs <= 0 then passed[#passed + 1] = a
    else soonestMs = sooner(soonestMs, remainingMs) end
  end
  if #passed == 0 then keyMs = sooner(keyMs, soonestMs) end
  return passed
end

for i = 0, ((#KEYS - 2) / 14) - 1 do
  local key, arg = i * 14, 7 + accounts + i * 5
  local candidates = filterByCooldown(KEYS[key + 2], ARGV[arg + 4], ARGV[arg + 5], KEYS[key + 14])
  local probes = {}
  if #candidates > 0 then
    candidates, probes = filterByBreaker(KEYS[key + 1], KEYS[key + 12], KEYS[key + 13], candidates)
  end
  if #candidates > 0 then
    local free = {}
    local isFull = false
    for j = 1, 3 do
      local limit = tonumber(ARGV[arg + j])
      if limit > 0 then
        redis.call('ZREMRANGEBYSCORE', KEYS[key + 2 + j], '-inf', now)
        free[j] = limit - redis.call('ZCARD', KEYS[key + 2 + j])
        if free[j] <= 0 then
          isFull = true
          shortenLeases(KEYS[key + 2 + j])
        end
      end
    end
    for _, a in ipairs(isFull and {} or candidates) do
      local account, probe = ARGV[7 + a], probes[a] or 0
      local spare, slots, isAllowed = 1000000, 1000000, true
      for j = 1, 3 do
        local limit = tonumber(ARGV[arg + j])
        if limit > 0 and isAllowed then
          local available, half = free[j], math.ceil(limit / 2)
          if isBackground then
            -- No caller waits for a background call. Leave an eighth of the slots for calls that callers wait for.
            available = available - math.floor(limit / 8)
            if redis.call('ZCOUNT', KEYS[key + 5 + j], now, now + waitingMs) > 0 then available = 0 end
            if available > 0 then
              available = available - math.min(math.ceil(limit / 4), jobWaits('ahead', KEYS[key + 2 + j], a))
            end
          elseif isContested(KEYS[key + 5 + j], account) then
            available = math.min(available, half - countHeld(KEYS[key + 2 + j], account))
          elseif now - findLastUseByOther(KEYS[key + 8 + j], account) < recentMs then
            local reserved = math.floor(limit / 8)
            if available > reserved then available = available - reserved
            else available = math.min(available, half - countHeld(KEYS[key + 2 + j], account)) end
          end
          if available <= 0 then
            isAllowed = false
            if isBackground then fullForJobs[KEYS[key + 2 + j]] = candidates
            else waitingSets[#waitingSets + 1] = KEYS[key + 5 + j] end
          end
          if available - 1 < spare then spare, slots = available - 1, limit end
        end
      end
      if isAllowed then
        for j = 1, 3 do
          if tonumber(ARGV[arg + j]) > 0 then
            redis.call('ZADD', KEYS[key + 2 + j], now + leaseMs, account .. '|' .. lease)
            redis.call('PEXPIRE', KEYS[key + 2 + j], leaseMs)
            if isBackground then
              jobWaits('granted', KEYS[key + 2 + j], a)
            else
              redis.call('ZREM', KEYS[key + 5 + j], account)
            end
            recordUse(KEYS[key + 8 + j], account)
          end
        end
        if probe == 1 then redis.call('HSET', KEYS[key + 1], 'probe', now + probeMs) end
        return { i + 1, a, probe, probe == 1 and 0 or spare, slots }
      end
    end
    busy = 1
    for j = 1, 3 do
      if free[j] and free[j] <= 0 then
        if isBackground then fullForJobs[KEYS[key + 2 + j]] = candidates
        else waitingSets[#waitingSets + 1] = KEYS[key + 5 + j] end
      end
    end
  end
end
for calls, candidates in pairs(fullForJobs) do jobWaits('refused', calls, candidates) end
for _, waiting in ipairs(waitingSets) do
  for a = 1, accounts do redis.call('ZADD', waiting, now + waitingMs, ARGV[7 + a]) end
  redis.call('ZREMRANGEBYSCORE', waiting, '-inf', now)
  redis.call('PEXPIRE', waiting, waitingMs)
end
return { 0, 0, busy, keyMs, breakerMs }
`);

/** How long an account counts as waiting. Longer than the interval at which a waiting process tries again. */
const waitingMs = 500;

/** How long slots are kept free for an account that used some. */
const recentMs = 10 * 60_000;

/**
 * Maximum accounts per acquire. It exceeds the number of accounts that can hold half of the slots of an upstream, a key
 * or a route at the same time, so accounts at their limit cannot fill the list.
 */
export const maxAccountsPerAcquire = 10;

export interface CallSlot {
  readonly candidate: RouteCandidate;
  /** The account that holds the slot. */
  readonly accountId: string;
  readonly lease: string;
  /** The name under which its process held it. */
  readonly holder: string;
  /** The single call that an open breaker lets through to test whether the route has recovered. */
  readonly isProbe: boolean;
  /** How many more calls of this candidate could have been granted at the same moment. */
  readonly spareSlots: number;
  /** How many concurrent calls this candidate allows, including those of others; a million if there is no limit. */
  readonly slots: number;
}

/**
 * `busy`: at least one candidate lacks only a free slot. `paused`: all candidates are paused. `unreported`: the holder
 * counts as dead, or Redis has lost its report.
 */
export type AcquireResult =
  | { readonly outcome: 'granted'; readonly slot: CallSlot }
  | { readonly outcome: 'busy' | 'unreported' }
  | AcquirePause;

export interface AcquirePause {
  readonly outcome: 'paused';
  /** Until the first key on cooldown may be used again; null if none is on cooldown. */
  readonly keyMs: number | null;
  /** Until the first open breaker lets a probe through; null if none is open. */
  readonly breakerMs: number | null;
}

/** Identifies a call across all workers. */
export const nameHolderLease = (holder: string, callNumber: number): string => `${holder}:${callNumber}`;

/**
 * Tries to acquire a call slot, in one round trip.
 * @param accountIds the waiting accounts, next first; at most `maxAccountsPerAcquire`
 * @param holder the name under which the process holds slots
 * @param callNumber unique for the holder
 * @param leaseMs how long its slots are held without renewal
 * @param isBackground no caller waits for the call: it gets no slot while callers wait, and never the last eighth
 */
export async function runAcquire(
  redis: RedisClient,
  candidates: readonly RouteCandidate[],
  accountIds: readonly string[],
  { holder, callNumber, leaseMs }: { holder: string; callNumber: number; leaseMs: number },
  isBackground = false,
): Promise<AcquireResult> {
  const lease = nameHolderLease(holder, callNumber);
  const keys: string[] = [];
  const args: (string | number)[] = [];
  for (const candidate of candidates) {
    const slots = slotsOf(candidate);
    const fields = cooldownFields(candidate);
    keys.push(
      redisKeys.routeHealth(candidate.route.id),
      redisKeys.keysOnCooldown(candidate.route.upstream.name),
    );
    keys.push(
      ...slots.keys,
      ...slots.keys.map(redisKeys.waitingFor),
      ...slots.keys.map(redisKeys.slotUsersOf),
    );
    keys.push(
      redisKeys.accountsFailedOnRoute(candidate.route.id),
      redisKeys.accountsServedOnRoute(candidate.route.id),
    );
    keys.push(redisKeys.accountsRejectedWithKey(candidate.route.id, candidate.fingerprint));
    args.push(...slots.limits, fields.key, fields.keyOnRoute);
  }
  keys.push(redisKeys.slotHolders, redisKeys.slotHoldersState);
  const [candidateNumber, accountNumber, third, fourth, fifth] = (await acquireScript.run(redis, keys, [
    lease,
    leaseMs,
    breakerRules.probeMs,
    waitingMs,
    accountIds.length,
    recentMs,
    isBackground ? 1 : 0,
    ...accountIds,
    ...args,
  ])) as [number, number, number, number, number];
  if (candidateNumber < 0) return { outcome: 'unreported' };
  if (candidateNumber > 0) {
    const accountId = accountIds[accountNumber - 1]!;
    const candidate = candidates[candidateNumber - 1]!;
    const capacity = { spareSlots: fourth, slots: fifth };
    return {
      outcome: 'granted',
      slot: {
        candidate,
        accountId,
        lease: nameLease(accountId, lease),
        holder,
        isProbe: third === 1,
        ...capacity,
      },
    };
  }
  if (third === 1) return { outcome: 'busy' };
  const orNull = (ms: number): number | null => (ms < 0 ? null : ms);
  return { outcome: 'paused', keyMs: orNull(fourth), breakerMs: orNull(fifth) };
}
