import test from 'ava';
import { ReadyQueue, takeReady } from '../../../shared/queue/ready-queue.ts';
import { createRedis, waitUntilReady } from '../../../shared/redis/redis-client.ts';
import { createLogger } from '../../../shared/runtime/logger.ts';
import { startTestRedis } from '../../support/redis.ts';

test('items are taken oldest first; a ticket tells what was taken, and a cancelled one leaves the others in place', async (t) => {
  const server = await startTestRedis();
  const log = createLogger('test', 'silent');
  const redis = createRedis(server.url, 'commands', log);
  const blocking = createRedis(server.url, 'blocking', log);
  t.teardown(async () => {
    redis.disconnect();
    blocking.disconnect();
    await server.stop();
  });
  await Promise.all([waitUntilReady(redis), waitUntilReady(blocking)]);
  const queue = new ReadyQueue(redis);
  const tickets: number[] = [];
  for (const item of ['a', 'b', 'c', 'd']) tickets.push(await queue.push(item));
  t.deepEqual(tickets, [1, 2, 3, 4]);
  t.is(await queue.countTaken(), 0);
  t.deepEqual(await takeReady(blocking, 1, 1), ['a']);
  t.is(await queue.countTaken(), 1);
  t.false(await queue.cancel(1));
  t.true(await queue.cancel(3));
  t.deepEqual(await takeReady(blocking, 10, 1), ['b', 'd']);
  t.is(await queue.countTaken(), 4);
  t.false(await queue.cancel(4));
  t.is(await queue.countWaiting(), 0);
});
