import type { RedisClient } from '../../../../shared/platform/redis/redis-client.ts';

/** What Redis executed, counted by itself. */
export interface RedisUse {
  readonly scripts: number;
  /** Commands other than scripts, both those within scripts and those beside them. */
  readonly commands: number;
  /** Time of the scripts, including the commands within them, in microseconds. */
  readonly scriptUs: number;
}

const scriptCommands = new Set(['eval', 'evalsha', 'eval_ro', 'evalsha_ro', 'fcall', 'fcall_ro']);

/** Reads the counts since Redis started, from `INFO commandstats`. */
export async function readRedisUse(redis: RedisClient): Promise<RedisUse> {
  const info = await redis.info('commandstats');
  const use = { scripts: 0, commands: 0, scriptUs: 0 };
  for (const [, name = '', calls, us] of info.matchAll(/^cmdstat_([^:]+):calls=(\d+),usec=(\d+)/gm)) {
    if (scriptCommands.has(name)) {
      use.scripts += Number(calls);
      use.scriptUs += Number(us);
    } else {
      use.commands += Number(calls);
    }
  }
  return use;
}

/** Returns what was executed between two readings, per request. */
export function compareRedisUse(before: RedisUse, after: RedisUse, requests: number): RedisUse {
  const perRequest = (name: keyof RedisUse): number => (after[name] - before[name]) / Math.max(1, requests);
  return {
    scripts: perRequest('scripts'),
    commands: perRequest('commands'),
    scriptUs: perRequest('scriptUs'),
  };
}

/** Reads the CPU time of Redis since it started, across its threads. Independent of other processes on the machine. */
export async function readRedisCpuUs(redis: RedisClient): Promise<number> {
  const text = await redis.info('cpu');
  const read = (name: string): number => Number(new RegExp(`^${name}:([\\d.]+)`, 'm').exec(text)?.[1]);
  return (read('used_cpu_user') + read('used_cpu_sys')) * 1_000_000;
}
