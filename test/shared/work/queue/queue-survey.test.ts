import test, { type ExecutionContext } from 'ava';
import {
  createRedis,
  waitUntilReady,
  type RedisClient,
} from '../../../../shared/platform/redis/redis-client.ts';
import { surveyReady } from '../../../../shared/work/queue/queue-survey.ts';
import { readyLists } from '../../../../shared/work/queue/ready-queue.ts';
import { captureLog } from '../../../support/captured-log.ts';
import { openTestRedis } from '../../../support/stores.ts';

async function connect(t: ExecutionContext): Promise<RedisClient> {
  const server = await openTestRedis();
  t.teardown(() => server.close());
  const redis = createRedis(server.url, 'commands', captureLog().log);
  t.teardown(() => redis.disconnect());
  await waitUntilReady(redis);
  return redis;
}

const itemOf = (model: string, admittedAtMs: number, text = ''): string =>
  JSON.stringify({ v: 1, request: { requestId: 'r', model, admittedAtMs }, body: text });

test('the chats of a short queue are counted exactly, without those whose callers have left', async (t) => {
  const redis = await connect(t);
  await redis.rpush(readyLists.quick, itemOf('a', 5), '', itemOf('b', 6), itemOf('a', 7));
  await redis.rpush(readyLists.bulk, itemOf('b', 4));
  t.deepEqual(
    await surveyReady(redis),
    new Map([
      ['a', { count: 2, oldestAtMs: 5 }],
      ['b', { count: 2, oldestAtMs: 4 }],
    ]),
  );
});

test('of a queue of large chats only a few of each end are read, and the rest is estimated from them', async (t) => {
  const redis = await connect(t);
  const text = 'x'.repeat(64_000);
  await redis.rpush(readyLists.quick, ...Array.from({ length: 20 }, (_, i) => itemOf('a', 100 + i, text)));
  await redis.rpush(readyLists.quick, ...Array.from({ length: 40 }, (_, i) => itemOf('b', 200 + i, text)));
  await redis.rpush(readyLists.quick, ...Array.from({ length: 20 }, (_, i) => itemOf('c', 300 + i, text)));
  const found = await surveyReady(redis);
  t.deepEqual([...found.keys()], ['a', 'c'], 'what is in the middle is not read');
  t.is(found.get('a')!.oldestAtMs, 100);
  t.is(
    [...found.values()].reduce((sum, { count }) => sum + count, 0),
    80,
  );
});
