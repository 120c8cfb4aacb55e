import { RedisScript, type RedisClient } from '../redis/redis-client.ts';
import { redisKeys } from '../redis/redis-keys.ts';
import { breakerRules } from './breaker-rules.ts';
import type { RouteWay } from './route-way.ts';

/**
 * Grants the first of the ways, in the order given, whose key is not set aside, whose route's breaker lets a call
 * through, and which has a free slot at its upstream, its key and its route. A slot is a lease: a worker that dies
 * leaves it to run out. Answers the way's number (from 1), whether the call is its route's probe, how many more could
 * have been granted, and of how many in all; or 0, whether only slots were lacking, and the milliseconds until the first
 * key is in use again, and the first breaker lets a probe through; -1 where there is none such.
 */
const grantScript = new RedisScript(`
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local lease, leaseMs, probeMs = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local keyMs, breakerMs, busy = -1, -1, 0
local function sooner(known, ms)
  if known < 0 or ms < known then return ms end
  return known
end
for i = 0, (#KEYS / 5) - 1 do
  local key, arg = i * 5, 3 + i * 5
  local free, probe, setAsideMs = true, 0, 0
  for _, setAside in ipairs(redis.call('HMGET', KEYS[key + 2], ARGV[arg + 4], ARGV[arg + 5])) do
    local untilMs = setAside and tonumber(string.match(setAside, '^%d+'))
    if untilMs and untilMs > now then
      free = false
      setAsideMs = math.max(setAsideMs, untilMs - now)
    end
  end
  if not free then keyMs = sooner(keyMs, setAsideMs) end
  local breaker = redis.call('HMGET', KEYS[key + 1], 'until', 'probe')
  if free and breaker[1] then
    local openMs = tonumber(breaker[1]) - now
    local probeLeftMs = tonumber(breaker[2] or '0') - now
    if openMs > 0 or probeLeftMs > 0 then
      free = false
      breakerMs = sooner(breakerMs, math.max(openMs, math.min(probeLeftMs, 100)))
    end
    probe = 1
  end
  local spare, slots = 1000000, 1000000
  for j = 1, 3 do
    local limit = tonumber(ARGV[arg + j])
    if free and limit > 0 then
      redis.call('ZREMRANGEBYSCORE', KEYS[key + 2 + j], '-inf', now)
      local left = limit - redis.call('ZCARD', KEYS[key + 2 + j])
      if left <= 0 then
        free = false
        busy = 1
      end
      if left - 1 < spare then spare, slots = left - 1, limit end
    end
  end
  if free then
    for j = 1, 3 do
      if tonumber(ARGV[arg + j]) > 0 then
        redis.call('ZADD', KEYS[key + 2 + j], now + leaseMs, lease)
        redis.call('PEXPIRE', KEYS[key + 2 + j], leaseMs)
      end
    end
    if probe == 1 then redis.call('HSET', KEYS[key + 1], 'probe', now + probeMs) end
    return { i + 1, probe, probe == 1 and 0 or spare, slots }
  end
end
return { 0, busy, keyMs, breakerMs }
`);

export interface RouteGrant {
  readonly way: RouteWay;
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

/**
 * One trip.
 * @param lease names the call, uniquely among all workers
 * @param leaseMs how long its slots are kept without being renewed
 */
export async function runGrant(
  redis: RedisClient,
  ways: readonly RouteWay[],
  lease: string,
  leaseMs: number,
): Promise<GrantAnswer> {
  const keys: string[] = [];
  const args: (string | number)[] = [];
  for (const way of ways) {
    const slots = slotsOf(way);
    const fields = setAsideFields(way);
    keys.push(redisKeys.routeHealth(way.route.id), redisKeys.keysSetAside(way.route.upstream.name));
    keys.push(...slots.keys);
    args.push(...slots.limits, fields.key, fields.keyOnRoute);
  }
  const [number, second, third = -1, fourth = -1] = (await grantScript.run(redis, keys, [
    lease,
    leaseMs,
    breakerRules.probeMs,
    ...args,
  ])) as [number, number, number?, number?];
  if (number > 0) {
    const way = ways[number - 1]!;
    const grant = { way, lease, isProbe: second === 1, spareSlots: third, slots: fourth };
    return { outcome: 'granted', grant };
  }
  if (second === 1) return { outcome: 'busy' };
  const orNull = (ms: number): number | null => (ms < 0 ? null : ms);
  return { outcome: 'paused', keyMs: orNull(third), breakerMs: orNull(fourth) };
}
