import test from 'ava';
import { advanceTrimPosition } from '../../../workers/ledger/advance-stream.ts';
import { createRedis, waitUntilReady } from '../../../shared/platform/redis/redis-client.ts';
import { redisKeys } from '../../../shared/platform/redis/redis-keys.ts';
import { createLogger } from '../../../shared/platform/runtime/logger.ts';
import { openTestRedis } from '../../support/stores.ts';

test('the trim position stored in Redis never decreases', async (t) => {
  const server = await openTestRedis();
  const redis = createRedis(server.url, 'commands', createLogger('test', 'silent'));
  t.teardown(async () => {
    redis.disconnect();
    await server.close();
  });
  await waitUntilReady(redis);
  for (const [ms, seq, stored] of [
    [100, 9, '100-9'],
    // Ids are compared as numbers, not as strings.
    [100, 10, '100-10'],
    [100, 9, '100-10'],
    [99, 11, '100-10'],
  ] as const) {
    await advanceTrimPosition(redis, 0, { ms, seq });
    t.is(await redis.get(redisKeys.ledgerTrimmed(0)), stored);
  }
});
