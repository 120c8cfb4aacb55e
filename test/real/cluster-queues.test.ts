import test from 'ava';
import { openBullQueue } from '../../shared/work/queue/open-bull-queue.ts';
import { createRedis, waitUntilReady } from '../../shared/platform/redis/redis-client.ts';
import { createLogger } from '../../shared/platform/runtime/logger.ts';
import { Faults } from '../../workers/reporting/faults.ts';
import { closeBullWorker } from '../../workers/intake/close-bull-worker.ts';
import { createBullWorker } from '../../workers/intake/create-bull-worker.ts';
import { startRedisCluster } from '../support/redis-cluster.ts';
import { waitFor } from '../support/wait-for.ts';
import { chooseCount } from './cluster-world.ts';

/** Enough workers to catch a failure that happens only sometimes. */
const workerCount = 8;
const rounds = chooseCount(1, 4);
/** Includes the 11 s after which a worker aborts a wait for work, and the 14 s after which a silent connection is closed. */
const takenWithinMs = 40_000;
const closedWithinMs = 10_000;

const log = createLogger('test', 'silent');

test('after the master of its queue was replaced, killed or hung, every worker takes jobs again, and can be closed', async (t) => {
  t.timeout(60_000 + rounds * 180_000);
  const cluster = await startRedisCluster();
  t.teardown(() => cluster.close());
  const redis = createRedis(cluster.url, 'commands', log);
  t.teardown(() => redis.disconnect());
  await waitUntilReady(redis);

  const taken = new Set<string>();
  const workers = await Promise.all(
    Array.from({ length: workerCount }, async (_, i) => {
      const name = `queue-${i}`;
      const bullmq = createRedis(cluster.url, 'bullmq', log);
      t.teardown(() => bullmq.disconnect());
      await waitUntilReady(bullmq);
      const worker = createBullWorker<string>(
        name,
        async ({ data }) => {
          taken.add(data);
        },
        { faults: new Faults(log), log, redis: bullmq, concurrency: 4, lockMs: 10_000 },
      );
      const queue = openBullQueue<string>(name, redis);
      return { name, worker, queue, bullmq };
    }),
  );

  /** Adds a job for each worker, and retries while Redis is down, as callers do. */
  const checkAll = async (after: string): Promise<void> => {
    const ids = await Promise.all(
      workers.map(async ({ name, queue }) => {
        const id = `${name} after ${after}`;
        await waitFor('a job to be accepted by Redis', () =>
          queue.add(name, id, { removeOnComplete: true }).then(
            () => true,
            () => false,
          ),
        );
        return id;
      }),
    );
    await waitFor(
      () => ids.filter((id) => !taken.has(id)).join(', '),
      () => ids.every((id) => taken.has(id)),
      takenWithinMs,
    );
  };
  const findOwner = async (): Promise<number> => {
    const masters = await cluster.masters();
    const owns = (port: number): Promise<boolean> =>
      cluster.call(port, 'EXISTS', '{bull}').then(
        () => true,
        () => false,
      );
    const isOwner = await Promise.all(masters.map(owns));
    return masters[isOwner.indexOf(true)]!;
  };

  await checkAll('the start');
  for (let round = 1; round <= rounds; round++) {
    await cluster.handOver(await findOwner());
    await checkAll(`planned failover ${round}`);

    const killed = await findOwner();
    await cluster.kill(killed);
    await cluster.waitForFailover();
    await checkAll(`death ${round}`);
    await cluster.restart(killed);

    const resume = cluster.pause(await findOwner());
    await cluster.waitForFailover();
    await checkAll(`hanging master ${round}`);
    resume();
  }

  const startedMs = performance.now();
  await Promise.all(workers.map(({ worker, bullmq }) => closeBullWorker(worker, bullmq)));
  t.true(performance.now() - startedMs < closedWithinMs);
  await Promise.all(workers.map(({ queue }) => queue.close()));
});
