import type { TestFn } from 'ava';
import { createRedis, waitUntilReady, type RedisClient } from '../../shared/platform/redis/redis-client.ts';
import { createLogger } from '../../shared/platform/runtime/logger.ts';
import { openTestRedis } from './stores.ts';

/** Starts one Redis for the tests of a file. @returns a function that returns its client, for use inside tests */
export function useRedis(test: TestFn): () => RedisClient {
  let redis: RedisClient | null = null;
  let stop: (() => Promise<void>) | null = null;
  test.before(async () => {
    const server = await openTestRedis();
    stop = () => server.close();
    redis = createRedis(server.url, 'commands', createLogger('test', 'silent'));
    await waitUntilReady(redis);
  });
  test.after.always(async () => {
    redis?.disconnect();
    await stop?.();
  });
  return () => redis!;
}
