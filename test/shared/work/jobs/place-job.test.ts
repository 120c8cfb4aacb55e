import { randomUUID } from 'node:crypto';
import test from 'ava';
import { releaseReservation } from '../../../../shared/work/settlement/settle-script.ts';
import { AppError } from '../../../../shared/contract/errors.ts';
import { cancelJob } from '../../../../shared/work/jobs/end-job-scripts.ts';
import { JobStore } from '../../../../shared/work/jobs/job-store.ts';
import { placeJob, type NewJob, type PlacedJob } from '../../../../shared/work/jobs/place-job-script.ts';
import { takeJob } from '../../../../shared/work/jobs/run-job-scripts.ts';
import { redisKeys, shardOf } from '../../../../shared/platform/redis/redis-keys.ts';
import { useRedis } from '../../../support/use-redis.ts';

const redisOf = useRedis(test);

function toNewJob(accountId: string, more: Partial<NewJob> = {}): NewJob {
  return {
    id: randomUUID(),
    accountId,
    queue: 'embedding',
    model: 'demo',
    operation: 'embeddings',
    timeoutMs: 60_000,
    format: 'float',
    webhookUrl: null,
    body: Buffer.from('{}'),
    ...more,
  };
}

async function place(
  accountId: string,
  more: Partial<NewJob> = {},
  admittedAtMs = Date.now(),
): Promise<{ id: string; placed: PlacedJob }> {
  const redis = redisOf();
  const job = toNewJob(accountId, more);
  const reservation = `${accountId} 100 0 ${admittedAtMs} <200`;
  await redis.hset(redisKeys.reservations(shardOf(accountId)), job.id, reservation);
  return { id: job.id, placed: await placeJob(redis, redis, job) };
}

// These tests run one after another: while one of them fills a shard, every job in the shard is rejected.
test.serial(
  'a job that would exceed the byte limit of its account or of its shard is rejected immediately',
  async (t) => {
    const redis = redisOf();
    const accountId = randomUUID();
    const totals = redisKeys.jobTotals(shardOf(accountId));
    await redis.hset(redisKeys.jobsHeld(accountId), 'bytes', 512_000_000);
    const tooMuch = await t.throwsAsync(place(accountId), { instanceOf: AppError });
    t.is(tooMuch?.code, 'too_many_jobs');
    t.truthy(tooMuch?.headers['retry-after']);
    await redis.del(redisKeys.jobsHeld(accountId));
    await redis.hset(totals, 'bytes', 2_000_000_000);
    t.is((await t.throwsAsync(place(accountId), { instanceOf: AppError }))?.code, 'queue_full');
    await redis.hset(totals, 'bytes', 0);
    await place(accountId);
  },
);

test.serial('a large body whose job could not be created is soon deleted', async (t) => {
  const redis = redisOf();
  const accountId = randomUUID();
  const id = randomUUID();
  const body = Buffer.alloc(100_000, 'x');
  // The job has no reservation, so the script rejects it; and Redis fails before the body can be deleted.
  const failing = new Proxy(redis, {
    get: (target, name) =>
      name === 'unlink' ? () => Promise.reject(new Error('away')) : (Reflect.get(target, name) as unknown),
  });
  await t.throwsAsync(
    placeJob(failing, failing, {
      id,
      accountId,
      queue: 'embedding',
      model: 'demo',
      operation: 'embeddings',
      timeoutMs: 24 * 60 * 60_000,
      format: null,
      webhookUrl: null,
      body,
    }),
  );
  t.true((await redis.ttl(redisKeys.jobBody(accountId, id))) <= 60);
  const { id: placed } = await place(accountId, { body });
  t.true((await redis.ttl(redisKeys.jobBody(accountId, placed))) > 24 * 60 * 60);
});

test.serial(
  'while Redis is out of memory, new jobs get a 503 and reserve nothing, and other jobs can end and release their reservations',
  async (t) => {
    const redis = redisOf();
    const accountId = randomUUID();
    const shard = shardOf(accountId);
    await redis.hset(redisKeys.account(accountId), { bal: 1000, res: 200, free: 0, fres: 0 });
    // The two jobs have different creation times; otherwise the one with the lower id would be taken first.
    const nowMs = Date.now();
    const [waiting, running] = [await place(accountId, {}, nowMs), await place(accountId, {}, nowMs + 1)];
    const taken = await takeJob(redis, { queue: 'embedding', model: 'demo' }, accountId, 'worker');
    t.is(taken.job?.id, waiting.id);
    const refused = toNewJob(accountId);
    await redis.hset(redisKeys.reservations(shard), refused.id, `${accountId} 100 0 ${Date.now()} <200`);
    await redis.hset(redisKeys.account(accountId), 'res', 300);
    await redis.config('SET', 'maxmemory', '1');
    try {
      const error = await t.throwsAsync(placeJob(redis, redis, refused), { instanceOf: AppError });
      t.is(error?.code, 'service_unavailable');
      const request = { accountId, requestId: refused.id, claimHash: null };
      t.is((await releaseReservation(redis, request)).outcome, 'settled');
      const failed = { ...request, requestId: waiting.id, jobAttempt: 1 };
      t.is((await releaseReservation(redis, failed)).outcome, 'settled');
      t.is((await cancelJob(redis, accountId, running.id)).outcome, 'cancelled');
    } finally {
      await redis.config('SET', 'maxmemory', '0');
    }
    t.is(await redis.hget(redisKeys.account(accountId), 'res'), '0');
    t.is(await redis.hget(redisKeys.jobsHeld(accountId), 'cost'), '0');
    t.is(await new JobStore(redis).find(accountId, refused.id), null);
  },
);

test.serial(
  'placing a job returns the same description as reading it, including its rank among the jobs of its account',
  async (t) => {
    const redis = redisOf();
    const accountId = randomUUID();
    for (const [rank, webhookUrl] of [null, 'https://example.com/hook'].entries()) {
      const { id, placed } = await place(accountId, { webhookUrl }, Date.now() + rank);
      t.is(placed.rank, rank);
      t.is(placed.weight, 1);
      const { job, ...read } = (await new JobStore(redis).find(accountId, id))!;
      t.deepEqual(placed.job, job);
      t.is<number | null, number | null>(placed.rank, read.rank);
      t.true(placed.nowMs <= read.nowMs);
    }
  },
);
