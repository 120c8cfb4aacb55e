import { RedisScript, type RedisClient } from '../redis/redis-client.ts';
import { redisKeys } from '../redis/redis-keys.ts';
import { breakerRules } from './breaker-rules.ts';
import type { RouteWay } from './route-way.ts';

/**
 * Grants the first of the ways, in the order given, whose key is not set aside, whose route's breaker lets a call
 * through, and which has a free slot at its upstream, its key and its route. A slot is a lease, named for the account it
 * is used by; a worker that dies leaves it to run out.
 *
 * The slot goes to the first of the accounts that may have it. While any other account waits for slots of the same
 * upstream, key or route, an account has half of them at the most, rounded up, or the last of an odd number would stay
 * free while two accounts wait. Where another account used them lately, one that has half leaves the last eighth free, so
 * that the other need not wait for a call to end. Accounts that got nothing because slots were lacking are noted as
 * waiting, until they ask again or for half a second.
 *
 * Redis's clock may step back. Times that are further ahead than any that is ever set are not waited for.
 *
 * Answers the way's number and the account's (from 1), whether the call is its route's probe, how many more could have
 * been granted, and of how many in all; or 0, whether only slots were lacking, and the milliseconds until the first key
 * is in use again, and the first breaker lets a probe through; -1 where there is none such.
 */
const grantScript = new RedisScript(`
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local lease, leaseMs, probeMs, waitingMs = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local accounts, recentMs = tonumber(ARGV[5]), tonumber(ARGV[6])
local keyMs, breakerMs, busy, lacking = -1, -1, 0, {}
local function sooner(known, ms)
  if known < 0 or ms < known then return ms end
  return known
end

-- Whether another account than this one waits for slots of this set.
local function isContested(waiting, account)
  local count = redis.call('ZCOUNT', waiting, now, now + waitingMs)
  if count == 0 then return false end
  local own = tonumber(redis.call('ZSCORE', waiting, account) or '0')
  return count > 1 or own < now or own > now + waitingMs
end

-- Those of workers that died would otherwise be kept for as long as the clock stepped back.
local function shortenLeases(calls)
  local longest = string.format('%.0f', now + leaseMs)
  for _, ahead in ipairs(redis.call('ZRANGEBYSCORE', calls, '(' .. longest, '+inf')) do
    redis.call('ZADD', calls, longest, ahead)
  end
end

-- Read at most once a set, and only where accounts contend for it: there are never more leases than slots.
local counted = {}
local function countHeld(calls, account)
  if not counted[calls] then
    local held = {}
    for _, member in ipairs(redis.call('ZRANGE', calls, 0, -1)) do
      local holder = string.match(member, '^(.-)|')
      if holder then held[holder] = (held[holder] or 0) + 1 end
    end
    counted[calls] = held
  end
  return counted[calls][account] or 0
end

-- When another account than this one was last granted a slot of this set: the latest account is known, and the time of
-- the latest before it.
local function findLastUseByOther(users, account)
  local latest = redis.call('HMGET', users, 'account', 'at', 'otherAt')
  return tonumber((latest[1] == account and latest[3] or latest[2]) or '0') or 0
end

local function noteUse(users, account)
  local latest = redis.call('HMGET', users, 'account', 'at')
  if latest[1] ~= account then
    redis.call('HSET', users, 'account', account, 'at', now, 'otherAt', latest[2] or 0)
  elseif now - tonumber(latest[2]) >= 1000 or now < tonumber(latest[2]) then
    redis.call('HSET', users, 'at', now)
  else
    return
  end
  redis.call('PEXPIRE', users, recentMs)
end

for i = 0, (#KEYS / 11) - 1 do
  local key, arg = i * 11, 6 + accounts + i * 5
  local open, probe, setAsideMs = true, 0, 0
  for _, setAside in ipairs(redis.call('HMGET', KEYS[key + 2], ARGV[arg + 4], ARGV[arg + 5])) do
    local untilMs = setAside and tonumber(string.match(setAside, '^%d+'))
    if untilMs and untilMs > now then
      open = false
      setAsideMs = math.max(setAsideMs, untilMs - now)
    end
  end
  if not open then keyMs = sooner(keyMs, setAsideMs) end
  local breaker = redis.call('HMGET', KEYS[key + 1], 'until', 'probe')
  if open and breaker[1] then
    local openMs = tonumber(breaker[1]) - now
    local probeLeftMs = tonumber(breaker[2] or '0') - now
    if openMs > ${breakerRules.longestPauseMs} then openMs = 0 end
    if probeLeftMs > probeMs then probeLeftMs = 0 end
    if openMs > 0 or probeLeftMs > 0 then
      open = false
      breakerMs = sooner(breakerMs, math.max(openMs, math.min(probeLeftMs, 100)))
    end
    probe = 1
  end
  if open then
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
    for a = 1, isFull and 0 or accounts do
      local account = ARGV[6 + a]
      local spare, slots, isAllowed = 1000000, 1000000, true
      for j = 1, 3 do
        local limit = tonumber(ARGV[arg + j])
        if limit > 0 and isAllowed then
          local left, half = free[j], math.ceil(limit / 2)
          if isContested(KEYS[key + 5 + j], account) then
            left = math.min(left, half - countHeld(KEYS[key + 2 + j], account))
          elseif now - findLastUseByOther(KEYS[key + 8 + j], account) < recentMs then
            local kept = math.floor(limit / 8)
            if left > kept then left = left - kept
            else left = math.min(left, half - countHeld(KEYS[key + 2 + j], account)) end
          end
          if left <= 0 then
            isAllowed = false
            lacking[#lacking + 1] = KEYS[key + 5 + j]
          end
          if left - 1 < spare then spare, slots = left - 1, limit end
        end
      end
      if isAllowed then
        for j = 1, 3 do
          if tonumber(ARGV[arg + j]) > 0 then
            redis.call('ZADD', KEYS[key + 2 + j], now + leaseMs, account .. '|' .. lease)
            redis.call('PEXPIRE', KEYS[key + 2 + j], leaseMs)
            redis.call('ZREM', KEYS[key + 5 + j], account)
            noteUse(KEYS[key + 8 + j], account)
          end
        end
        if probe == 1 then redis.call('HSET', KEYS[key + 1], 'probe', now + probeMs) end
        return { i + 1, a, probe, probe == 1 and 0 or spare, slots }
      end
    end
    busy = 1
    for j = 1, 3 do
      if free[j] and free[j] <= 0 then lacking[#lacking + 1] = KEYS[key + 5 + j] end
    end
  end
end
for _, waiting in ipairs(lacking) do
  for a = 1, accounts do redis.call('ZADD', waiting, now + waitingMs, ARGV[6 + a]) end
  redis.call('ZREMRANGEBYSCORE', waiting, '-inf', now)
  redis.call('PEXPIRE', waiting, waitingMs)
end
return { 0, 0, busy, keyMs, breakerMs }
`);

/** Longer than a process that waits takes to ask again. */
const waitingMs = 500;

/** How long slots are kept free for an account that used some. */
const recentMs = 10 * 60_000;

/** Accounts that one question may be asked for: more than can have their share of upstream, key and route at once. */
export const maxAccountsPerGrant = 10;

export interface RouteGrant {
  readonly way: RouteWay;
  /** The account that the slot was granted to. */
  readonly accountId: string;
  readonly lease: string;
  /** The one call that an open breaker lets through, to see whether the route is well again. */
  readonly isProbe: boolean;
  /** How many further calls could have been granted of this way in the same moment. */
  readonly spareSlots: number;
  /** How many calls of this way there may be at once, those of others among them; a million where nothing bounds them. */
  readonly slots: number;
}

/** Nothing could be granted: `busy` where a slot is all that was lacking to one of the ways, else when pauses end. */
export type GrantAnswer =
  { readonly outcome: 'granted'; readonly grant: RouteGrant } | { readonly outcome: 'busy' } | GrantPause;

export interface GrantPause {
  readonly outcome: 'paused';
  /** Until the first of the keys that are set aside is in use again; null where none is. */
  readonly keyMs: number | null;
  /** Until the first of the open breakers lets a probe through; null where none is open. */
  readonly breakerMs: number | null;
}

/** Sorted sets that a call of this way takes a slot of, and their bounds; 0 where there is none. */
export function slotsOf({ route, fingerprint }: RouteWay): { keys: string[]; limits: number[] } {
  const { upstream } = route;
  return {
    keys: [
      redisKeys.callsOfUpstream(upstream.name),
      redisKeys.callsOfKey(upstream.name, fingerprint),
      redisKeys.callsOfRoute(route.id),
    ],
    limits: [upstream.maxConcurrency, upstream.maxConcurrencyPerKey ?? 0, route.maxConcurrency ?? 0],
  };
}

/** Under which names a key of this way is set aside: for everything, and on this route alone. */
export function setAsideFields({ route, fingerprint }: RouteWay): { key: string; keyOnRoute: string } {
  return { key: fingerprint, keyOnRoute: `${fingerprint} ${route.id}` };
}

/** The name under which an account's call holds its slots. */
export function nameLease(accountId: string, lease: string): string {
  return `${accountId}|${lease}`;
}

/**
 * One trip.
 * @param accountIds those that wait, in the order of their turns; at most `maxAccountsPerGrant`
 * @param lease names the call, uniquely among all workers
 * @param leaseMs how long its slots are kept without being renewed
 */
export async function runGrant(
  redis: RedisClient,
  ways: readonly RouteWay[],
  accountIds: readonly string[],
  lease: string,
  leaseMs: number,
): Promise<GrantAnswer> {
  const keys: string[] = [];
  const args: (string | number)[] = [];
  for (const way of ways) {
    const slots = slotsOf(way);
    const fields = setAsideFields(way);
    keys.push(redisKeys.routeHealth(way.route.id), redisKeys.keysSetAside(way.route.upstream.name));
    keys.push(...slots.keys, ...slots.keys.map(redisKeys.waitingFor), ...slots.keys.map(redisKeys.usersOf));
    args.push(...slots.limits, fields.key, fields.keyOnRoute);
  }
  const [wayNumber, accountNumber, third, fourth, fifth] = (await grantScript.run(redis, keys, [
    lease,
    leaseMs,
    breakerRules.probeMs,
    waitingMs,
    accountIds.length,
    recentMs,
    ...accountIds,
    ...args,
  ])) as [number, number, number, number, number];
  if (wayNumber > 0) {
    const accountId = accountIds[accountNumber - 1]!;
    const way = ways[wayNumber - 1]!;
    const shares = { isProbe: third === 1, spareSlots: fourth, slots: fifth };
    return {
      outcome: 'granted',
      grant: { way, accountId, lease: nameLease(accountId, lease), ...shares },
    };
  }
  if (third === 1) return { outcome: 'busy' };
  const orNull = (ms: number): number | null => (ms < 0 ? null : ms);
  return { outcome: 'paused', keyMs: orNull(fourth), breakerMs: orNull(fifth) };
}

/** Whether another account waits for slots that this call holds. One trip. */
export async function isContested(redis: RedisClient, { way, accountId }: RouteGrant): Promise<boolean> {
  const slots = slotsOf(way);
  const keys = slots.keys.filter((_, i) => slots.limits[i]! > 0).map((key) => redisKeys.waitingFor(key));
  return (await contestedScript.run(redis, keys, [accountId])) === 1;
}

const contestedScript = new RedisScript(`
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
for _, waiting in ipairs(KEYS) do
  for _, account in ipairs(redis.call('ZRANGE', waiting, now, '+inf', 'BYSCORE', 'LIMIT', 0, 2)) do
    if account ~= ARGV[1] then return 1 end
  end
end
return 0
`);
