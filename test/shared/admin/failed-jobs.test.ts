import test from 'ava';
import type { AdminDeps } from '../../../shared/admin/admin-deps.ts';
import { readFailedJobs } from '../../../shared/admin/failed-jobs.ts';
import { readPlace, type ListPlace } from '../../../shared/admin/list-place.ts';
import { dryRunRetryFailedJobs, retryFailedJobs } from '../../../shared/admin/retry-failed-jobs.ts';
import { redisKeys, shardOf } from '../../../shared/platform/redis/redis-keys.ts';
import { flushAll } from '../../support/all-of-redis.ts';
import { createTrail } from '../../support/collecting-trail.ts';
import { useRedis } from '../../support/use-redis.ts';

const redis = useRedis(test);

test.serial.beforeEach(async () => {
  await flushAll(redis());
});

/** Creates records of failed jobs, with only the fields that these tests need, and lists them as failed. */
async function failJobs(count: number, atMsOf: (i: number) => number): Promise<string[]> {
  const ids = Array.from({ length: count }, (_, i) => `job-${String(i).padStart(4, '0')}`);
  await Promise.all(
    ids.flatMap((id, i) => {
      const accountId = `account-${i % 20}`;
      const record = {
        st: 'f',
        q: 'chat',
        m: 'model',
        log: `f${atMsOf(i)}`,
        code: 'upstream_error',
        msg: 'no',
      };
      return [
        redis().hset(redisKeys.job(accountId, id), record),
        redis().zadd(redisKeys.jobFailures(shardOf(accountId), 'chat'), atMsOf(i), `${accountId} ${id}`),
      ];
    }),
  );
  return ids;
}

test.serial(
  'failed jobs are read newest first, each once, even if many failed at the same moment',
  async (t) => {
    const ids = await failJobs(3_000, (i) => (i < 2_500 ? 1_000 : i));
    const read: string[] = [];
    let lastMs = Infinity;
    for await (const {
      job: { id, transitions },
    } of readFailedJobs(redis(), 'chat')) {
      const atMs = transitions[0]!.atMs;
      t.true(atMs <= lastMs);
      lastMs = atMs;
      read.push(id);
      // Removes the jobs from the list, as `queue retry` does with retried jobs.
      const accountId = `account-${Number(id.slice(4)) % 20}`;
      await redis().zrem(redisKeys.jobFailures(shardOf(accountId), 'chat'), `${accountId} ${id}`);
    }
    t.deepEqual(read.toSorted(), ids);
  },
);

test.serial('failed jobs are read one page at a time, not all at once', async (t) => {
  await failJobs(4_000, (i) => i);
  const reading = readFailedJobs(redis(), 'chat');
  t.is((await reading.next()).value?.job.id, 'job-3999');
  await flushAll(redis());
  let buffered = 0;
  for await (const { job } of reading) buffered += job.id === '' ? 0 : 1;
  t.is(buffered, 99);
});

test.serial('a retry reports its progress, and the number of rejected jobs by reason', async (t) => {
  await failJobs(250, (i) => i);
  const progress: number[] = [];
  const deps = { redis: redis() } as unknown as AdminDeps;
  const refused = [
    {
      why: 'its request is not stored, because it was large, or because very many jobs of its account failed',
      jobs: 250,
      example: { id: 'job-0249', account: 'account-9' },
    },
  ];
  const { trail, written } = createTrail();
  const onProgress = (jobs: number): unknown => progress.push(jobs);
  t.like(await retryFailedJobs(deps, trail, 'chat', { onProgress }), { retried: 0, refused, hasMore: false });
  t.deepEqual([progress.length, progress.at(-1)], [250, 250]);
  t.like(written, [{ action: 'queue.retry' }, { outcome: 'done', after: { retried: 0 } }]);
  const { effects } = await dryRunRetryFailedJobs(deps, 'chat', {});
  t.deepEqual(effects, { failed: 250, jobs: 0, accounts: 0, refused });
  t.is(written.length, 2, 'a dry run is not recorded');
});

test.serial('failed jobs are retried page by page, each once', async (t) => {
  await failJobs(25, (i) => i);
  const deps = { redis: redis() } as unknown as AdminDeps;
  const { trail } = createTrail();
  const sizes: number[] = [];
  let after: ListPlace | null = null;
  for (let hasMore = true; hasMore;) {
    const page = await retryFailedJobs(deps, trail, 'chat', { limit: 10, after });
    sizes.push(page.refused[0]!.jobs);
    ({ hasMore } = page);
    after = readPlace(page.lastId!);
  }
  t.deepEqual(sizes, [10, 10, 5]);
});
