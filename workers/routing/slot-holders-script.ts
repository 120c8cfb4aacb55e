// decision 0070
import { LuaScript } from '../../shared/platform/redis/lua-script.ts';
import type { RedisClient } from '../../shared/platform/redis/redis-client.ts';
import { redisKeys } from '../../shared/platform/redis/redis-keys.ts';
import { liveness } from '../../shared/platform/redis/liveness.ts';

/**
 * If no worker has reported for this long, Redis or all workers were away. Workers then have time to report again before
 * any counts as dead.
 */
const maxGapMs = 3_000;
/** How long no slots are granted after an outage, while the survivors restore their leases. */
export const restorePauseMs = 2_000;
const keyLifetimeMs = 24 * 60 * 60_000;

const reportScript = new LuaScript(
  new URL('./report-holder.lua', import.meta.url),
  ['holders', 'dead', 'state', 'holder', 'knownEpoch', 'newEpoch', 'lifetimeMs', 'leaseMs'],
  { constants: { maxGapMs, restorePauseMs, keyLifetimeMs } },
);

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
  const [isDead, mustRestore, epoch, dead] = (await reportScript.run(redis, {
    holders: redisKeys.slotHolders,
    dead: redisKeys.deadSlotHolders,
    state: redisKeys.slotHoldersState,
    holder,
    knownEpoch,
    newEpoch,
    lifetimeMs: liveness.worker.deadMs,
    leaseMs,
  })) as [isDead: 0 | 1, mustRestore: 0 | 1, epoch: string, dead: string[]];
  return { isDead: isDead === 1, mustRestore: mustRestore === 1, epoch, dead };
}

/** Makes a holder count as dead now, because its worker exits. Slots that it did not release are freed. */
export async function retireHolder(redis: RedisClient, holder: string): Promise<void> {
  await redis.zadd(redisKeys.slotHolders, 'XX', 0, holder);
}

const freeScript = new LuaScript(new URL('./free-dead-slots.lua', import.meta.url), ['deadHolders'], {
  itemNames: ['calls'],
});

/** Well below the number of keys for which a script would delay others. */
const setsPerScript = 32;

/** Frees the slots of all dead holders in these sorted sets of slots. @returns how many leases there were */
export async function freeDeadSlots(redis: RedisClient, slotSets: readonly string[]): Promise<number> {
  let freed = 0;
  for (let from = 0; from < slotSets.length; from += setsPerScript) {
    const sets = slotSets.slice(from, from + setsPerScript).map((calls) => ({ calls }));
    freed += (await freeScript.run(redis, { deadHolders: redisKeys.deadSlotHolders }, sets)) as number;
  }
  return freed;
}
