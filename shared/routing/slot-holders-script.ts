import { heartbeatLifetimeMs } from '../queue/heartbeat-times.ts';
import { RedisScript, type RedisClient } from '../redis/redis-client.ts';
import { redisKeys } from '../redis/redis-keys.ts';

/**
 * If no worker has reported for this long, Redis or all workers were away. Workers then have time to report again before
 * any counts as dead.
 */
const maxGapMs = 3_000;
/** How long no slots are granted after an outage, while the survivors restore their leases. */
export const restorePauseMs = 2_000;
const keyLifetimeMs = 24 * 60 * 60_000;

/**
 * Reports a holder of call slots as alive, and declares those dead that have not reported for a while. A holder that was
 * declared dead is never alive again, so everything that it still sends is recognised: its worker continues under a new
 * name. That is true only as long as Redis has its data, which the epoch shows: after a loss of the data, a holder with
 * the previous epoch is alive if it reports soon.
 *
 * Returns whether the holder is dead, whether its leases may have expired, the epoch, and the holders that were declared
 * dead within the lifetime of a lease.
 */
const reportScript = new RedisScript(`
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local holders, dead, state = KEYS[1], KEYS[2], KEYS[3]
local holder, knownEpoch, lifetimeMs, leaseMs = ARGV[1], ARGV[2], tonumber(ARGV[4]), tonumber(ARGV[5])
local function asText(ms) return string.format('%.0f', ms) end

local saved = redis.call('HMGET', state, 'epoch', 'since', 'reportedAt', 'graceUntil')
local epoch, since = saved[1] or ARGV[3], tonumber(saved[2] or now)
local reportedAt, graceUntil = tonumber(saved[3] or '0'), tonumber(saved[4] or '0')
-- The clock may have stepped back.
if reportedAt > now or now - reportedAt > ${maxGapMs} or graceUntil > now + lifetimeMs then
  graceUntil = now + lifetimeMs
end
redis.call('HSET', state, 'epoch', epoch, 'since', since, 'reportedAt', now, 'graceUntil', asText(graceUntil))
for _, name in ipairs(redis.call('ZRANGEBYSCORE', holders, '(' .. asText(now + lifetimeMs), '+inf')) do
  redis.call('ZADD', holders, asText(now + lifetimeMs), name)
end

local isDead, mustRestore = 0, 0
if knownEpoch ~= '' then
  local aliveUntil = tonumber(redis.call('ZSCORE', holders, holder) or '-1')
  if aliveUntil < 0 then
    if knownEpoch == epoch or now - since > lifetimeMs then isDead = 1 else mustRestore = 1 end
  elseif now - aliveUntil + lifetimeMs > math.max(lifetimeMs, leaseMs * 2 / 3) then
    mustRestore = 1
  end
end
if isDead == 0 then redis.call('ZADD', holders, asText(now + lifetimeMs), holder) end
if mustRestore == 1 then redis.call('HSET', state, 'pauseUntil', asText(now + ${restorePauseMs})) end

if now >= graceUntil then
  for _, name in ipairs(redis.call('ZRANGEBYSCORE', holders, '-inf', '(' .. asText(now), 'LIMIT', 0, 100)) do
    redis.call('ZREM', holders, name)
    redis.call('ZADD', dead, now, name)
  end
end
redis.call('ZREMRANGEBYSCORE', dead, '-inf', now - leaseMs)
redis.call('PEXPIRE', dead, leaseMs)
redis.call('PEXPIRE', holders, ${keyLifetimeMs})
redis.call('PEXPIRE', state, ${keyLifetimeMs})
return { isDead, mustRestore, epoch, redis.call('ZRANGE', dead, 0, -1) }
`);

export interface HolderReport {
  /** Whether the holder was declared dead. Its slots are free, and it is not alive again. */
  readonly isDead: boolean;
  /** Whether its leases may have expired or been lost, so that it must renew them now. */
  readonly mustRestore: boolean;
  readonly epoch: string;
  /** The holders whose slots must be freed. */
  readonly dead: readonly string[];
}

/**
 * Reports a holder as alive, in one round trip.
 * @param knownEpoch from its last report; empty if it has never reported
 * @param newEpoch the epoch to begin if Redis has none
 */
export async function reportHolder(
  redis: RedisClient,
  holder: string,
  { knownEpoch, newEpoch, leaseMs }: { knownEpoch: string; newEpoch: string; leaseMs: number },
): Promise<HolderReport> {
  const keys = [redisKeys.slotHolders, redisKeys.deadSlotHolders, redisKeys.slotHoldersState];
  const [isDead, mustRestore, epoch, dead] = (await reportScript.run(redis, keys, [
    holder,
    knownEpoch,
    newEpoch,
    heartbeatLifetimeMs,
    leaseMs,
  ])) as [number, number, string, string[]];
  return { isDead: isDead === 1, mustRestore: mustRestore === 1, epoch, dead };
}

/** Makes a holder count as dead now, because its worker exits. Slots that it did not release are freed. */
export async function retireHolder(redis: RedisClient, holder: string): Promise<void> {
  await redis.zadd(redisKeys.slotHolders, 'XX', 0, holder);
}

const freeScript = new RedisScript(`
local dead, freed = {}, 0
for _, name in ipairs(redis.call('ZRANGE', KEYS[1], 0, -1)) do dead[name] = true end
for i = 2, #KEYS do
  for _, lease in ipairs(redis.call('ZRANGE', KEYS[i], 0, -1)) do
    if dead[string.match(lease, '|([^|]*):%d+$')] then freed = freed + redis.call('ZREM', KEYS[i], lease) end
  end
end
return freed
`);

/** Well below the number of keys for which a script would delay others. */
const setsPerScript = 32;

/** Frees the slots of all dead holders in these sorted sets of slots. @returns how many leases there were */
export async function freeDeadSlots(redis: RedisClient, slotSets: readonly string[]): Promise<number> {
  let freed = 0;
  for (let from = 0; from < slotSets.length; from += setsPerScript) {
    const keys = [redisKeys.deadSlotHolders, ...slotSets.slice(from, from + setsPerScript)];
    freed += Number(await freeScript.run(redis, keys, []));
  }
  return freed;
}
