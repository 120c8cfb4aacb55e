import { randomUUID } from 'node:crypto';
import test from 'ava';
import pino from 'pino';
import { CancelledStore } from '../../../../shared/work/queue/cancelled-store.ts';
import { createRedis, waitUntilReady } from '../../../../shared/platform/redis/redis-client.ts';
import { redisKeys } from '../../../../shared/platform/redis/redis-keys.ts';
import { openTestRedis } from '../../../support/stores.ts';

test('check reports for each id, in order, whether it was cancelled, until half an hour after its deadline', async (t) => {
  const server = await openTestRedis();
  t.teardown(() => server.close());
  const redis = createRedis(server.url, 'commands', pino({ level: 'silent' }));
  t.teardown(() => redis.disconnect());
  await waitUntilReady(redis);
  const cancelled = new CancelledStore(redis);
  const ids = Array.from({ length: 5 }, () => randomUUID());
  t.deepEqual(await cancelled.check(ids), [false, false, false, false, false]);

  await redis.zadd(redisKeys.cancelled, Date.now() - 1, 'long ago');
  await cancelled.add(ids[3]!, Date.now() - 1_000);
  const deadlineAtMs = Date.now() + 24 * 60 * 60_000;
  await cancelled.add(ids[1]!, deadlineAtMs);
  t.deepEqual(await cancelled.check(ids), [false, true, false, true, false]);
  t.deepEqual(await cancelled.check(['long ago']), [false], 'expired ids are dropped when others are added');
  const untilMs = Number(await redis.zscore(redisKeys.cancelled, ids[1]!));
  t.is(untilMs, deadlineAtMs + 30 * 60_000);
  t.true((await redis.pttl(redisKeys.cancelled)) > untilMs - Date.now() - 60_000);
});
