import test, { type ExecutionContext } from 'ava';
import { chooseLane, lanes } from '../../../../shared/work/queue/fair-share.ts';
import { ReadyQueue, takeReady } from '../../../../shared/work/queue/ready-queue.ts';
import {
  createRedis,
  waitUntilReady,
  type RedisClient,
} from '../../../../shared/platform/redis/redis-client.ts';
import { createLogger } from '../../../../shared/platform/runtime/logger.ts';
import { openTestRedis } from '../../../support/stores.ts';

async function connectClients(t: ExecutionContext): Promise<Record<'redis' | 'blocking', RedisClient>> {
  const server = await openTestRedis();
  const log = createLogger('test', 'silent');
  const redis = createRedis(server.url, 'commands', log);
  const blocking = createRedis(server.url, 'blocking', log);
  t.teardown(async () => {
    redis.disconnect();
    blocking.disconnect();
    await server.close();
  });
  await Promise.all([waitUntilReady(redis), waitUntilReady(blocking)]);
  return { redis, blocking };
}

test('the quick lane, for accounts with few chats in flight, is taken before the bulk lane, and a worker may leave out the bulk lane', async (t) => {
  t.deepEqual([1, 16, 17, 1_000].map(chooseLane), ['quick', 'quick', 'bulk', 'bulk']);
  const { redis, blocking } = await connectClients(t);
  const queues = { quick: new ReadyQueue(redis, 'quick'), bulk: new ReadyQueue(redis, 'bulk') };
  t.is(await queues.bulk.push('bulk 1'), 1);
  t.is(await queues.quick.push('quick 1'), 1);
  t.is(await queues.bulk.push('bulk 2'), 2);
  t.deepEqual(await takeReady(blocking, lanes, 10, 1), ['quick 1']);
  t.deepEqual(await takeReady(blocking, ['quick'], 10, 0), []);
  t.deepEqual(await takeReady(blocking, lanes, 10, 1), ['bulk 1', 'bulk 2']);
  t.deepEqual([await queues.quick.countTaken(), await queues.bulk.countTaken()], [1, 2]);
});

test('items are taken oldest first; an item can be cancelled by its ticket until it is taken, and the others keep their order', async (t) => {
  const { redis, blocking } = await connectClients(t);
  const queue = new ReadyQueue(redis, 'quick');
  const tickets: number[] = [];
  for (const item of ['a', 'b', 'c', 'd']) tickets.push(await queue.push(item));
  t.deepEqual(tickets, [1, 2, 3, 4]);
  t.is(await queue.countTaken(), 0);
  t.deepEqual(await takeReady(blocking, lanes, 1, 1), ['a']);
  t.is(await queue.countTaken(), 1);
  t.false(await queue.cancel(1));
  t.true(await queue.cancel(3));
  t.deepEqual(await takeReady(blocking, lanes, 10, 1), ['b', 'd']);
  t.is(await queue.countTaken(), 4);
  t.false(await queue.cancel(4));
  t.is(await queue.countWaiting(), 0);
});
