import type { RedisClient } from '../../shared/platform/redis/redis-client.ts';

/** A Redis client that awaits `interrupt` before it runs a script. */
export function interruptScripts(redis: RedisClient, interrupt: () => Promise<void>): RedisClient {
  return new Proxy(redis, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name, target);
      if (typeof value !== 'function') return value;
      const call = value.bind(target) as (...args: unknown[]) => unknown;
      if (name !== 'evalsha') return call;
      return async (...args: unknown[]) => {
        await interrupt();
        return await call(...args);
      };
    },
  });
}
