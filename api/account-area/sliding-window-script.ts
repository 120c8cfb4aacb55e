import { randomBytes } from 'node:crypto';
import { LuaScript } from '../../shared/platform/redis/lua-script.ts';
import { callRedis, type RedisClient } from '../../shared/platform/redis/redis-client.ts';

/** At most `limit` (1 or more) attempts within any `windowSeconds`. All keys of one call share a hash tag. */
export interface SlidingWindow {
  readonly key: string;
  readonly limit: number;
  readonly windowSeconds: number;
}

/**
 * - `take`: adds an attempt to every window, or to none of them if one is full
 * - `check`: adds nothing
 * - `count`: adds an attempt to every window, even if one is full
 */
export type WindowUse = 'take' | 'check' | 'count';

export interface FullWindow {
  /** Index of the full window; if several are full, of the one with the longest wait. */
  readonly index: number;
  /** Time until every window allows another attempt (ms), at least 1. */
  readonly waitMs: number;
}

const script = new LuaScript(new URL('./use-sliding-windows.lua', import.meta.url), ['use', 'member'], {
  itemNames: ['window', 'limit', 'windowMs'],
});

/**
 * @param member names the attempt, so that its repetitions count once; by default, every attempt is a new one
 * @returns null if no window was full before this attempt
 */
export async function useSlidingWindows(
  redis: RedisClient,
  use: WindowUse,
  windows: readonly SlidingWindow[],
  member: string = randomBytes(12).toString('base64url'),
): Promise<FullWindow | null> {
  const items = windows.map(({ key, limit, windowSeconds }) => ({
    window: key,
    limit,
    windowMs: windowSeconds * 1_000,
  }));
  const reply = await callRedis(() => script.run(redis, { use, member }, items));
  const [index, waitMs] = reply as [index: number, waitMs: number];
  return index === 0 ? null : { index: index - 1, waitMs };
}
