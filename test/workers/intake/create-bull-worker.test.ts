import { setTimeout as delay } from 'node:timers/promises';
import test from 'ava';
import { openBullQueue } from '../../../shared/queue/open-bull-queue.ts';
import { createRedis, waitUntilReady } from '../../../shared/redis/redis-client.ts';
import { createLogger } from '../../../shared/runtime/logger.ts';
import { Faults } from '../../../shared/storage/faults.ts';
import { createBullWorker } from '../../../workers/intake/create-bull-worker.ts';
import { startTestRedis } from '../../support/redis.ts';
import { waitFor } from '../../support/wait-for.ts';

const log = createLogger('test', 'silent');

test('a worker with a backlog does not block its process while Redis is unavailable, and takes the remaining jobs afterwards', async (t) => {
  const server = await startTestRedis();
  const { url, port } = server;
  const bullmq = createRedis(url, 'bullmq', log);
  const redis = createRedis(url, 'commands', log);
  t.teardown(() => {
    bullmq.disconnect();
    redis.disconnect();
  });
  await Promise.all([waitUntilReady(bullmq), waitUntilReady(redis)]);
  const done = new Set<string>();
  let endFirst = (): void => undefined;
  const first = new Promise<void>((resolve) => {
    endFirst = resolve;
  });
  const worker = createBullWorker<string>(
    'backlog',
    async ({ data }) => {
      if (data === 'first') await first;
      done.add(data);
    },
    { faults: new Faults(log), log, redis: bullmq, concurrency: 1, lockMs: 10_000 },
  );
  t.teardown(() => worker.close(true));
  const queue = openBullQueue<string>('backlog', redis);
  for (const name of ['first', 'second', 'third']) await queue.add(name, name);
  await waitFor('the first job to be taken', async () => (await queue.getActiveCount()) === 1);

  await server.stop();
  await waitFor('the outage to be noticed', () => bullmq.status !== 'ready');
  // The job ends, and BullMQ requests the next one, which fails without any I/O.
  endFirst();
  let turns = 0;
  const timer = setInterval(() => {
    turns += 1;
  }, 10);
  await delay(500);
  clearInterval(timer);
  t.true(turns > 10, 'timers continue to run');

  const again = await startTestRedis({ port });
  t.teardown(() => again.stop());
  await waitFor('Redis to accept commands again', () =>
    queue.add('fourth', 'fourth').then(
      () => true,
      () => false,
    ),
  );
  await waitFor('the remaining jobs to be taken', () => done.has('fourth'));
});
