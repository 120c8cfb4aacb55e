import type { Redis } from 'ioredis';
import type { RedisClient } from './redis-client.ts';

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

/** Reads the memory of each server, from `INFO`, because managed servers refuse `CONFIG GET`. One round trip. */
export async function readRedisMemory(redis: RedisClient): Promise<RedisMemory[]> {
  const servers: readonly Pick<Redis, 'info'>[] = 'nodes' in redis ? redis.nodes('master') : [redis];
  return await Promise.all(
    servers.map(async (server) => parseInfo(await server.info('memory', 'errorstats').catch(() => ''))),
  );
}

function parseInfo(text: string): RedisMemory {
  const read = (name: string): string | null =>
    text
      .split('\r\n')
      .find((line) => line.startsWith(`${name}:`))
      ?.slice(name.length + 1) ?? null;
  const [used, max, refused] = [read('used_memory'), read('maxmemory'), read('errorstat_OOM')];
  return {
    usedBytes: used === null ? null : Number(used),
    maxBytes: max === null || max === '0' ? null : Number(max),
    policy: read('maxmemory_policy'),
    refusedCommands: refused === null ? 0 : Number(refused.replace('count=', '')),
  };
}
