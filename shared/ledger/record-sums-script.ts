import { LuaScript } from '../platform/redis/lua-script.ts';
import type { RedisClient } from '../platform/redis/redis-client.ts';
import { redisKeys } from '../platform/redis/redis-keys.ts';
import type { Field } from './request-stats-fields.ts';
import { totalWindow, type StatsWindow } from './request-stats-windows.ts';

const script = new LuaScript(
  new URL('./record-request-stats.lua', import.meta.url),
  [
    'shortPrefix',
    'longPrefix',
    'totalsPrefix',
    'shortSeconds',
    'shortLifetime',
    'longSeconds',
    'longLifetime',
    'totalsSeconds',
    'totalsLifetime',
  ],
  { itemNames: ['isTotal', 'field', 'amount'] },
);
const clockScript = new LuaScript(new URL('./read-clock.lua', import.meta.url), ['shown']);

/** The buckets of a window. */
export interface Buckets {
  readonly window: StatsWindow;
  readonly key: (bucket: number | '') => string;
}

/**
 * Adds sums to the current bucket of two windows, and others to that of all models, in one round trip. After a failure, it
 * is unknown whether Redis has added them.
 */
export async function recordSums(
  redis: RedisClient,
  short: Buckets,
  long: Buckets,
  fields: readonly Field[],
  totals: readonly Field[] = [],
): Promise<void> {
  const toItem =
    (isTotal: 0 | 1) =>
    ([field, amount]: Field) => ({ isTotal, field, amount: String(amount) });
  await script.run(
    redis,
    {
      shortPrefix: short.key(''),
      longPrefix: long.key(''),
      totalsPrefix: redisKeys.totalStats(''),
      shortSeconds: short.window.bucketSeconds,
      shortLifetime: short.window.retentionSeconds,
      longSeconds: long.window.bucketSeconds,
      longLifetime: long.window.retentionSeconds,
      totalsSeconds: totalWindow.bucketSeconds,
      totalsLifetime: totalWindow.retentionSeconds,
    },
    [...fields.map(toItem(0)), ...totals.map(toItem(1))],
  );
}

/** Reads the clock of the node that has the buckets (Unix milliseconds). */
export const readStatsClock = async (redis: RedisClient): Promise<number> =>
  Number(await clockScript.run(redis, { shown: redisKeys.shownModels }));
