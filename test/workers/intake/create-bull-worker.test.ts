import { setTimeout as delay } from 'node:timers/promises';
import test from 'ava';
import { openBullQueue } from '../../../shared/work/queue/open-bull-queue.ts';
import { createRedis, waitUntilReady } from '../../../shared/platform/redis/redis-client.ts';
import { createLogger } from '../../../shared/platform/runtime/logger.ts';
import { Faults } from '../../../workers/reporting/faults.ts';
import { createBullWorker } from '../../../workers/intake/create-bull-worker.ts';
import { startTestRedis } from '../../support/redis.ts';
import { waitFor } from '../../support/wait-for.ts';

const log = createLogger('test', 'silent');

test('a worker with a queue of jobs does not block its process while Redis is down, and continues once Redis is back', async (t) => {
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
  let finishFirst = (): void => undefined;
  const first = new Promise<void>((resolve) => {
    finishFirst = resolve;
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
  await waitFor('the first job to start', async () => (await queue.getActiveCount()) === 1);

  await server.stop();
  await waitFor('the connection loss to be noticed', () => bullmq.status !== 'ready');
  // The first job finishes, and BullMQ requests the next one. That request fails without any I/O.
  finishFirst();
  let ticks = 0;
  const timer = setInterval(() => {
    ticks += 1;
  }, 10);
  await delay(500);
  clearInterval(timer);
  t.true(ticks > 10, 'timers keep firing');

  const restarted = await startTestRedis({ port });
  t.teardown(() => restarted.stop());
  await waitFor('Redis to accept another job', () =>
    queue.add('fourth', 'fourth').then(
      () => true,
      () => false,
    ),
  );
  await waitFor('the job added after the outage to run', () => done.has('fourth'));
});

test('if BullMQ leaves its blocking connection ended, it is opened again, and the worker waits on it', async (t) => {
  const server = await startTestRedis();
  t.teardown(() => server.stop());
  const bullmq = createRedis(server.url, 'bullmq', log);
  const redis = createRedis(server.url, 'commands', log);
  t.teardown(() => {
    bullmq.disconnect();
    redis.disconnect();
  });
  await Promise.all([waitUntilReady(bullmq), waitUntilReady(redis)]);
  const done = new Set<string>();
  const worker = createBullWorker<string>(
    'ended',
    async ({ data }) => {
      done.add(data);
    },
    { faults: new Faults(log), log, redis: bullmq, concurrency: 1, lockMs: 10_000 },
  );
  t.teardown(() => worker.close(true));
  const isWaiting = async (): Promise<boolean> => String(await redis.client('LIST')).includes('cmd=bzpopmin');
  await waitFor('the worker to wait', isWaiting);
  (await worker.getBackend().blockingClient)!.disconnect();
  await waitFor('the wait to end', async () => !(await isWaiting()));
  await waitFor('the worker to wait again', isWaiting);
  await openBullQueue<string>('ended', redis).add('job', 'job');
  t.true(await waitFor('the job to run', () => done.has('job')));
});
