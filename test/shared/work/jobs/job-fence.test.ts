import test, { type ExecutionContext } from 'ava';
import { ledgerStreamBound } from '../../../../shared/money/admit-script.ts';
import { finishRequest, type RequestOutcome } from '../../../../shared/work/settlement/finish-request.ts';
import { AppError } from '../../../../shared/contract/errors.ts';
import {
  cancelJob,
  expireJobs,
  deleteEndedJobs,
  listWaitingLists,
  recoverLostJobs,
  maxDeaths,
} from '../../../../shared/work/jobs/end-job-scripts.ts';
import { restartWindowMs } from '../../../../shared/work/jobs/job-record.ts';
import { JobStore } from '../../../../shared/work/jobs/job-store.ts';
import {
  handBackJob,
  renewJobs,
  startJob,
  takeJob,
  type TakenJob,
} from '../../../../shared/work/jobs/run-job-scripts.ts';
import { PriceStore } from '../../../../shared/ledger/price-store.ts';
import { noUsage } from '../../../../shared/catalog/cost.ts';
import type { AdmittedRequest } from '../../../../shared/money/admitted-request.ts';
import { redisKeys, shardOf } from '../../../../shared/platform/redis/redis-keys.ts';
import { ResponseStore } from '../../../../shared/work/replies/response-store.ts';
import { decodeFirstFrame } from '../../../../shared/work/replies/frame.ts';
import { AttemptOvertaken, StoredFramesStore } from '../../../../shared/work/replies/stored-frames-store.ts';
import { noChannel } from '../../../../shared/work/queue/job-kinds.ts';
import { ReplyPublisher } from '../../../../workers/replies/reply-publisher.ts';
import { ReplyWriter } from '../../../../workers/replies/reply-writer.ts';
import { createLogger } from '../../../../shared/platform/runtime/logger.ts';
import type { ObjectStore } from '../../../../shared/platform/storage/object-store.ts';
import { RequestStatsRecorder } from '../../../../shared/ledger/request-stats-recorder.ts';
import { readBalance, readEntries } from '../../../support/billing.ts';
import { openLedgerServices, type LedgerServices } from '../../../support/ledger-services.ts';
import { chatReservedNano, enqueueChat } from '../../../support/place-jobs.ts';
import { liveness } from '../../../../shared/platform/redis/liveness.ts';

/** Which changes to a job are allowed from its current worker, from earlier workers and from its owner. */

let services: LedgerServices;
test.before(async () => {
  services = await openLedgerServices();
});
test.after.always(() => services.close());

const modelQueue = { queue: 'chat', model: 'demo-echo' } as const;
const balanceNano = 100_000_000_000n;

interface JobRef {
  readonly accountId: string;
  readonly id: string;
}

async function createJob(): Promise<JobRef> {
  const { id: accountId } = await services.createAccount({ balanceNano });
  return { accountId, id: await enqueueChat(services, accountId, 'demo-echo') };
}

async function take({ accountId }: JobRef, worker = 'worker'): Promise<TakenJob> {
  const { job } = await takeJob(services.redis, modelQueue, accountId, worker);
  if (job === null) throw new Error('there is no job to take');
  return job;
}

/** Simulates that the worker has been silent long enough for its lease to expire. */
async function expireLease({ accountId, id }: JobRef): Promise<void> {
  const shard = shardOf(accountId);
  await services.redis.zadd(redisKeys.jobLeases(shard), 1, `${accountId} ${id}`);
  await recoverLostJobs(services.redis, shard);
}

const countWaiting = async ({ accountId }: JobRef): Promise<number> =>
  Number((await services.redis.hget(redisKeys.jobTotals(shardOf(accountId)), 'chat')) ?? 0);

async function statusOf({ accountId, id }: JobRef): Promise<string> {
  return (await new JobStore(services.redis).find(accountId, id))!.job.status;
}

async function finish(
  { accountId, id }: JobRef,
  attempt: number,
  deliver: () => Promise<void> = async () => undefined,
): Promise<void> {
  const log = createLogger('test', 'silent');
  const { redis, ledger, hotAccounts, mongo } = services;
  const requestStats = new RequestStatsRecorder({
    stats: { record: async () => undefined },
    traffic: { record: async () => undefined },
    log,
  });
  const dependencies = { redis, ledger, hotAccounts, requestStats, prices: new PriceStore(mongo.db) };
  const request: AdmittedRequest = {
    requestId: id,
    accountId,
    model: 'demo-echo',
    pricing: { date_of_use: '2026-01-01', type: 'tokens', prompt: 50, free_requests: false },
    priceVersion: 'v',
    admittedAtMs: Date.now(),
    deadlineAtMs: Date.now() + 60_000,
    userIp: '127.0.0.1',
    promptTokens: 3,
    user: null,
    claimHash: null,
    jobAttempt: attempt,
  };
  const outcome: RequestOutcome = {
    usage: { ...noUsage, promptTokens: 1_000 },
    counted: false,
    error: null,
    charged: true,
    reachedModel: true,
  };
  await finishRequest(dependencies, request, outcome, deliver);
  await requestStats.stop();
}

async function expectNothingHeld(t: ExecutionContext, { accountId }: JobRef): Promise<void> {
  t.is((await readBalance(services.redis, accountId)).reserved, 0n);
  const held = Object.entries(await services.redis.hgetall(redisKeys.jobsHeld(accountId)));
  t.deepEqual(
    held.filter(([name, value]) => name !== 'bytes' && value !== '0'),
    [],
  );
}

// The number of waiting jobs is per shard, which accounts share: these two tests run one after another.
test.serial(
  'after its lease on a job expired, a worker cannot start, renew or hand back the job, even if no other worker has it',
  async (t) => {
    const job = await createJob();
    const before = await countWaiting(job);
    const first = await take(job);
    await expireLease(job);
    for (let i = 0; i < 2; i++) {
      t.is(await startJob(services.redis, first), 'gone');
      t.deepEqual([...(await renewJobs(services.redis, [first]))], [[job.id, 'gone']]);
      t.is(await handBackJob(services.redis, first), 'gone');
      if (i === 0) t.is(await countWaiting(job), before);
      else t.is(await countWaiting(job), before - 1);
      if (i === 0) t.is((await take(job, 'another')).attempt, 2);
    }
  },
);

test.serial('a job that is handed back twice is queued only once', async (t) => {
  const job = await createJob();
  const before = await countWaiting(job);
  const takenJob = await take(job);
  t.is(await handBackJob(services.redis, takenJob), 1);
  t.is(await handBackJob(services.redis, takenJob), 'gone');
  t.is(await countWaiting(job), before);
});

test('if two workers finish the same job, only the later attempt charges and ends it', async (t) => {
  const job = await createJob();
  const first = await take(job);
  t.is(await startJob(services.redis, first), 'ok');
  await expireLease(job);
  const second = await take(job, 'another');
  t.is(await startJob(services.redis, second), 'ok');
  await finish(job, first.attempt);
  t.is(await statusOf(job), 'active');
  await finish(job, second.attempt);
  await finish(job, second.attempt);
  t.is(await statusOf(job), 'succeeded');
  const charges = (await readEntries(services.redis, job.accountId)).filter(({ kind }) => kind === 'charge');
  t.is(charges.length, 1);
  t.is((await readBalance(services.redis, job.accountId)).balance, balanceNano - 50_000_000n);
  await expectNothingHeld(t, job);
});

test('if no store accepts its response, a job fails and is not charged', async (t) => {
  const job = await createJob();
  const takenJob = await take(job);
  await startJob(services.redis, takenJob);
  await finish(job, takenJob.attempt, async () => {
    throw new AppError('too_many_jobs');
  });
  t.is(await statusOf(job), 'failed');
  t.is((await readBalance(services.redis, job.accountId)).balance, balanceNano);
  await expectNothingHeld(t, job);
});

test('if its worker dies, a job is queued again; after the maximum number of deaths it fails and is not charged', async (t) => {
  const job = await createJob();
  for (let death = 1; death <= maxDeaths; death++) {
    t.is(await statusOf(job), 'queued');
    await startJob(services.redis, await take(job));
    await expireLease(job);
  }
  t.is(await statusOf(job), 'failed');
  t.is((await readBalance(services.redis, job.accountId)).balance, balanceNano);
  await expectNothingHeld(t, job);
});

test('ten expired leases do not count as deaths if the worker reports again after each', async (t) => {
  const job = await createJob();
  const begin = async (): Promise<TakenJob> => {
    t.is(await statusOf(job), 'queued');
    const takenJob = await take(job);
    await startJob(services.redis, takenJob);
    await expireLease(job);
    return takenJob;
  };
  await begin();
  // These are attempts 2 to 11. The worker of the first attempt did die, which still counts.
  for (let stall = 1; stall <= 10; stall++) {
    const takenJob = await begin();
    for (let i = 0; i < 2; i++)
      t.deepEqual([...(await renewJobs(services.redis, [takenJob]))], [[job.id, 'gone']]);
  }
  for (let death = 2; death <= maxDeaths; death++) await begin();
  t.is(await statusOf(job), 'failed');
  await expectNothingHeld(t, job);
});

test('if a started job is handed back and no worker starts it within a day, it fails and is not charged', async (t) => {
  const job = await createJob();
  const deadlines = redisKeys.jobDeadlines(shardOf(job.accountId));
  const member = `${job.accountId} ${job.id}`;
  const takenJob = await take(job);
  await startJob(services.redis, takenJob);
  t.is(await services.redis.zscore(deadlines, member), null, 'an active job has no deadline');
  const begunAtMs = Date.now();
  await handBackJob(services.redis, takenJob);
  const remainingMs = Number(await services.redis.zscore(deadlines, member)) - begunAtMs;
  t.true(Math.abs(remainingMs - restartWindowMs) < 60_000, String(remainingMs));
  await services.redis.zadd(deadlines, 1, member);
  await expireJobs(services.redis, shardOf(job.accountId));
  const { job: ended } = (await new JobStore(services.redis).find(job.accountId, job.id))!;
  t.like(ended, { status: 'failed', error: { code: 'deadline_exceeded' }, receipt: { costNano: 0n } });
  await expectNothingHeld(t, job);
});

test('a job cancelled after a worker took it does not start, and ends even if that worker dies', async (t) => {
  const job = await createJob();
  const takenJob = await take(job);
  t.like(await cancelJob(services.redis, job.accountId, job.id), {
    outcome: 'requested',
    workerId: 'worker',
  });
  t.is(await startJob(services.redis, takenJob), 'cancelled');
  t.is(await handBackJob(services.redis, takenJob), 'cancelled');
  t.is((await readBalance(services.redis, job.accountId)).reserved, chatReservedNano);
  await expireLease(job);
  t.is(await statusOf(job), 'cancelled');
  await expectNothingHeld(t, job);
});

test('a job counts towards the Redis memory of its account until it is deleted; after a retryable failure its stored body still counts', async (t) => {
  const job = await createJob();
  const bytes = async (): Promise<number> =>
    Number((await services.redis.hget(redisKeys.jobsHeld(job.accountId), 'bytes')) ?? 0);
  const whole = await bytes();
  const takenJob = await take(job);
  await startJob(services.redis, takenJob);
  await finish(job, takenJob.attempt, async () => {
    throw new AppError('too_many_jobs');
  });
  t.is(await bytes(), whole);
  const shard = shardOf(job.accountId);
  await services.redis.zadd(redisKeys.jobsEnded(shard), 1, `${job.accountId} ${job.id}`);
  await deleteEndedJobs(services.redis, shard);
  t.is(await bytes(), 0);
  t.is(await new JobStore(services.redis).find(job.accountId, job.id), null);
  t.is(await services.redis.exists(redisKeys.jobBody(job.accountId, job.id)), 0);
  t.is((await new JobStore(services.redis).list(job.accountId, null, { page: 1, pageSize: 10 })).total, 0);
});

test('if the clock steps back, a lease still expires after the usual time', async (t) => {
  const job = await createJob();
  await take(job);
  const shard = shardOf(job.accountId);
  const member = `${job.accountId} ${job.id}`;
  await services.redis.zadd(redisKeys.jobLeases(shard), Date.now() + 3_600_000, member);
  await recoverLostJobs(services.redis, shard);
  t.true(
    Number(await services.redis.zscore(redisKeys.jobLeases(shard), member)) <=
      Date.now() + liveness.job.deadMs,
  );
});

test('the response of a later attempt can be read even if the response of an earlier one has moved to the object store', async (t) => {
  const job = await createJob();
  const request = { requestId: job.id, accountId: job.accountId };
  const storedFrames = new StoredFramesStore(services.redis, services.redis);
  const responses = new ResponseStore(storedFrames, {} as ObjectStore);
  await take(job);
  const first = await responses.keep({ ...request, jobAttempt: 1 }, Buffer.alloc(4_000, 1));
  if (!('size' in first)) throw new Error('it is not in Redis');
  // Replaces the frames in Redis with the marker that they have moved.
  t.true(await storedFrames.markMoved('frames', request, first.size.bytes));
  await expireLease(job);
  t.is((await take(job)).attempt, 2);
  await responses.keep({ ...request, jobAttempt: 2 }, Buffer.alloc(4_000, 2));
  const read = await storedFrames.readFrames(request, 0, 100_000);
  if (!('bytes' in read)) throw new Error('it is recorded as moved');
  const { frame } = decodeFirstFrame(read.bytes)!;
  t.is(frame.attempt, 2);
  t.deepEqual(frame.payload, Buffer.alloc(4_000, 2));
});

test('a charged response is not changed by responses and errors that earlier attempts deliver later', async (t) => {
  const job = await createJob();
  const request = { requestId: job.id, accountId: job.accountId };
  const storedFrames = new StoredFramesStore(services.redis, services.redis);
  const written: string[] = [];
  const objects = { put: async (key: string) => written.push(key) } as unknown as ObjectStore;
  const responses = new ResponseStore(storedFrames, objects);
  for (const attempt of [1, 2, 3]) {
    t.is((await take(job)).attempt, attempt);
    if (attempt < 3) await expireLease(job);
  }
  const key = redisKeys.storedFrames(job.accountId, job.id);
  await finish(
    job,
    3,
    async () => void (await responses.keep({ ...request, jobAttempt: 3 }, Buffer.alloc(500, 3))),
  );
  t.is(await statusOf(job), 'succeeded');
  const before = [await services.redis.getBuffer(key), await services.redis.expiretime(key)] as const;
  for (const jobAttempt of [1, 2]) {
    const late = { ...request, jobAttempt };
    await t.throwsAsync(responses.keep(late, Buffer.alloc(400, 1)), { instanceOf: AttemptOvertaken });
    await t.throwsAsync(responses.keep(late, Buffer.alloc(200_000, 1)), { instanceOf: AttemptOvertaken });
    await t.throwsAsync(storedFrames.putResponse(late, Buffer.alloc(400, 1)), {
      instanceOf: AttemptOvertaken,
    });
    await finish(job, jobAttempt, () => Promise.reject(new AttemptOvertaken()));
    const publisher = new ReplyPublisher({
      workerId: 'worker',
      redis: services.redis,
      payloads: services.redis,
      storedFrames,
      log: createLogger('test', 'silent'),
      onNoListeners: () => undefined,
    });
    const writer = new ReplyWriter(publisher, noChannel, { ...request, claimHash: null }, jobAttempt);
    writer.error({ code: 'upstream_error', message: 'no' });
    await publisher.sent();
  }
  // Attempt 2 is refused before it writes anything. Attempt 1 is refused only after it has stored a large response.
  t.true(
    written.every((name) => name.includes('/1/')),
    'only attempt 1 writes an object, under its own name',
  );
  t.deepEqual([await services.redis.getBuffer(key), await services.redis.expiretime(key)], before);
  t.is(await statusOf(job), 'succeeded');
});

test.serial('while the ledger has no space for the entries of a job, no job is taken', async (t) => {
  const job = await createJob();
  const stream = redisKeys.ledgerStream(shardOf(job.accountId));
  const before = await services.redis.xlen(stream);
  const fill = "for i = 1, tonumber(ARGV[1]) do redis.call('XADD', KEYS[1], '*', 'kind', 'test') end";
  await services.redis.eval(fill, 1, stream, ledgerStreamBound - before);
  t.deepEqual(await takeJob(services.redis, modelQueue, job.accountId, 'worker'), { left: 1, job: null });
  await services.redis.xtrim(stream, 'MAXLEN', before);
  t.is((await take(job)).id, job.id);
  await services.redis.del(stream);
});

test.serial(
  'a list of waiting jobs that is listed but empty is reported as empty, and listed no longer',
  async (t) => {
    const { accountId } = await createJob();
    const shard = shardOf(accountId);
    const line = `${accountId} image demo-image`;
    await services.redis.sadd(redisKeys.jobLines(shard), line);
    const read = async (): Promise<Record<string, number>> => {
      const found: Record<string, number> = {};
      for await (const lists of listWaitingLists(services.redis, shard))
        for (const list of lists) if (list.accountId === accountId) found[list.model] = list.waiting;
      return found;
    };
    t.deepEqual(await read(), { 'demo-echo': 1, 'demo-image': 0 });
    t.deepEqual(await read(), { 'demo-echo': 1 });
  },
);
