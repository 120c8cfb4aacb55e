import type { RedisClient } from './redis-client.ts';
import { readInfo, type RedisInfo } from './redis-info.ts';

/** What one Redis server tells about its memory. Null if it does not respond, or the user may not read it. */
export interface RedisMemory {
  readonly usedBytes: number | null;
  /** Null if Redis has no limit of its own. */
  readonly maxBytes: number | null;
  /** What it does when its memory is full; `noeviction`: refuses writes. */
  readonly policy: string | null;
  /** Commands that it has refused for lack of memory since its start. */
  readonly refusedCommands: number;
}

/** Reads the memory of each server. One round trip. */
export const readRedisMemory = async (redis: RedisClient): Promise<RedisMemory[]> =>
  (await readInfo(redis, 'memory', 'errorstats')).map(toMemory);

function toMemory(read: RedisInfo): RedisMemory {
  const [used, max, refused] = [read('used_memory'), read('maxmemory'), read('errorstat_OOM')];
  return {
    usedBytes: used === null ? null : Number(used),
    maxBytes: max === null || max === '0' ? null : Number(max),
    policy: read('maxmemory_policy'),
    refusedCommands: refused === null ? 0 : Number(refused.replace('count=', '')),
  };
}
