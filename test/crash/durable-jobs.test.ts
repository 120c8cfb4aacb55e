import anyTest, { type ExecutionContext } from 'ava';
import type { VendorSimulator } from '../../scripts/vendor-simulator/simulator.ts';
import { AccountStore } from '../../shared/accounts/account-store.ts';
import { ReservationStore } from '../../shared/money/reservation-store.ts';
import { releaseReservation } from '../../shared/work/settlement/settle-script.ts';
import { JobStore } from '../../shared/work/jobs/job-store.ts';
import { findTransition, hasEnded, type JobRecord } from '../../shared/work/jobs/job-record.ts';
import { placeJob } from '../../shared/work/jobs/place-job-script.ts';
import { startJob, takeJob } from '../../shared/work/jobs/run-job-scripts.ts';
import { LedgerStore } from '../../shared/ledger/ledger-store.ts';
import { PriceStore } from '../../shared/ledger/price-store.ts';
import { parseRub } from '../../shared/encoding/money.ts';
import { createRedis, waitUntilReady } from '../../shared/platform/redis/redis-client.ts';
import { redisKeys, shardOf } from '../../shared/platform/redis/redis-keys.ts';
import { ResponseStore } from '../../shared/work/replies/response-store.ts';
import { StoredFramesStore } from '../../shared/work/replies/stored-frames-store.ts';
import { ObjectStore } from '../../shared/platform/storage/object-store.ts';
import { OrphanSweeper } from '../../workers/maintenance/sweep-orphans.ts';
import { ShardLeases } from '../../workers/ledger/shard-leases.ts';
import { countOpenJobs, expireJobLeases, describeJobHolds, listAllJobs } from '../support/audit-jobs.ts';
import { ageReservation } from '../support/billing.ts';
import { readJob } from '../support/jobs.ts';
import { testWithOwnStore } from '../support/own-stores.ts';
import { admitChat, chatReservedNano, enqueueChat } from '../support/place-jobs.ts';
import type { TestAccount, TestStack } from '../support/stack.ts';
import { allQueues } from '../support/stack.ts';
import { useVendorStack } from '../support/vendor-stack.ts';
import { waitFor } from '../support/wait-for.ts';
import { startRole } from '../support/worker-process.ts';
import { verifyLedger } from './audit.ts';

/**
 * Durable jobs while their processes die, freeze or stop. All tests share one stack, whose own worker runs no jobs and
 * only does maintenance.
 */

const test = anyTest.serial;

const catalogOf = (vendorUrl: string): string => `
upstreams:
  vendor: { kind: openai, baseUrl: "${vendorUrl}/v1", apiKeys: [vendor-key], maxConcurrency: 512 }
  narrow: { kind: openai, baseUrl: "${vendorUrl}/v1", apiKeys: [vendor-key], maxConcurrency: 2 }
models:
  - { id: chat, type: chat, context: 8192, pricing: { prompt: 50, completion: 150 }, routes: [{ upstream: vendor, model: gpt }] }
  - { id: narrow-chat, type: chat, context: 8192, pricing: { prompt: 50, completion: 150 }, routes: [{ upstream: narrow, model: gpt-narrow }] }
`;

let vendor: VendorSimulator;
let stack: TestStack;

useVendorStack(
  anyTest,
  catalogOf,
  (started) => {
    ({ stack, vendor } = started);
  },
  { durableRedis: true, workers: [{ ...allQueues, queues: [] }] },
);

async function findJob(accountId: string, id: string): Promise<JobRecord> {
  return (await new JobStore(stack.redis).find(accountId, id))!.job;
}

async function waitForJobRecord(
  accountId: string,
  id: string,
  matches: (job: JobRecord) => boolean = hasEnded,
): Promise<JobRecord> {
  return await waitFor('the job', async () => {
    const job = await findJob(accountId, id);
    return matches(job) && job;
  });
}

const waitForAllJobs = (accounts: readonly TestAccount[]): Promise<boolean> =>
  waitFor('all jobs to end', async () => {
    const ids = accounts.map(({ id }) => id);
    return (await countOpenJobs(stack.redis, ids)) === 0;
  });

const sumReceipts = (jobs: readonly JobRecord[]): bigint =>
  jobs.reduce((sum, { receipt }) => sum + (receipt?.costNano ?? 0n), 0n);

/** Asserts that the account's jobs all succeeded, its balance fell by their cost, and no reservation remains. */
async function checkPaidOnce(t: ExecutionContext, { id }: TestAccount, count: number): Promise<void> {
  const jobs = await listAllJobs(stack.redis, id);
  t.is(jobs.length, count);
  t.deepEqual(
    jobs.filter(({ status }) => status !== 'succeeded'),
    [],
  );
  const { balanceNano, reservedNano } = await stack.readAccount(id);
  const spent = parseRub('100')! - balanceNano;
  t.true(spent > 0n);
  t.is(sumReceipts(jobs), spent);
  t.is(reservedNano, 0n);
  t.deepEqual(await describeJobHolds(stack.redis, id), []);
}

async function checkLedger(t: ExecutionContext): Promise<void> {
  const { mongo, redis, config } = stack;
  const stores = {
    redis,
    accounts: new AccountStore(mongo.db, config),
    ledger: new LedgerStore(mongo.db),
    prices: new PriceStore(mongo.db),
    reservations: new ReservationStore(redis),
  };
  t.deepEqual(await verifyLedger(stores, 30_000), []);
}

/** Sweeps as many times as it takes to release an orphan. */
async function sweep(): Promise<void> {
  const { redis, log } = stack;
  const leases = new ShardLeases(redis, 'a-sweeper', (shard) => `test:sweep-lease:${shard}`);
  const sweeper = new OrphanSweeper(new ReservationStore(redis), leases, log);
  for (let round = 0; round < 3; round++) await sweeper.sweep();
}

/** Returns the number of worker deaths recorded for a job. */
const readDeaths = async (accountId: string, id: string): Promise<number> =>
  Number((await stack.redis.hget(redisKeys.job(accountId, id), 'x')) ?? 0);

test('a worker asked to stop finishes active jobs and returns unstarted jobs to the queue, without counting a worker death for them', async (t) => {
  const account = await stack.createAccount();
  const first = await startRole(t, 'worker', stack.env);
  const held = vendor.hold('gpt-narrow');
  t.teardown(() => held.end());
  const ids: string[] = [];
  for (let i = 0; i < 5; i++) ids.push(await enqueueChat(stack, account.id, 'narrow-chat'));
  await waitFor('the calls', () => held.waiting === 2);
  await waitFor('the worker to fetch the next job', async () => {
    const jobs = await listAllJobs(stack.redis, account.id);
    return jobs.filter(({ workerId }) => workerId !== null).length === 3;
  });
  const exited = first.terminate();
  // No other worker is running yet, so returned jobs stay in the queue.
  const waiting = redisKeys.jobsWaiting(account.id, 'chat', 'narrow-chat');
  await waitFor('the jobs to be returned to the queue', async () => (await stack.redis.zcard(waiting)) === 3);
  t.is(first.child.exitCode, null);
  await startRole(t, 'worker', stack.env);
  held.end();
  t.is(await exited, 0);
  await waitForAllJobs([account]);
  await checkPaidOnce(t, account, 5);
  const jobs = await Promise.all(ids.map((id) => findJob(account.id, id)));
  t.deepEqual(
    jobs.map(({ attempts }) => attempts).toSorted((one, other) => one - other),
    [1, 1, 1, 1, 2],
  );
  t.deepEqual(await Promise.all(ids.map((id) => readDeaths(account.id, id))), [0, 0, 0, 0, 0]);
});

test('a job still active after the shutdown grace period returns to the queue, runs on another worker and is charged once', async (t) => {
  const account = await stack.createAccount();
  const first = await stack.startWorker({ queues: ['chat'] });
  const held = vendor.hold('gpt');
  t.teardown(() => held.end());
  const id = await enqueueChat(stack, account.id, 'chat');
  await waitFor('the call', () => held.waiting === 1);
  const stopped = first.stop();
  await first.handBack!();
  const { status, workerId } = await findJob(account.id, id);
  t.is(status, 'queued');
  t.is(workerId, null);
  await stopped;
  const second = await stack.startWorker({ queues: ['chat'] });
  await waitFor('the call of the other worker', () => held.waiting === 1);
  held.end();
  t.is((await waitForJobRecord(account.id, id)).attempts, 2);
  t.is(await readDeaths(account.id, id), 0);
  await checkPaidOnce(t, account, 1);
  await second.stop();
});

test('if a worker dies between storing a response and settling its job, the job runs again and only the new response is returned', async (t) => {
  const { redis, config } = stack;
  const account = await stack.createAccount();
  const queueAndModel = { queue: 'chat', model: 'chat' } as const;
  const id = await enqueueChat(stack, account.id, 'chat');
  const { job } = await takeJob(redis, queueAndModel, account.id, 'a-worker-that-dies');
  t.is(await startJob(redis, job!), 'ok');
  const payloads = createRedis(config.redisUrl, 'payloads', stack.log);
  t.teardown(() => payloads.disconnect());
  await waitUntilReady(payloads);
  const objects = new ObjectStore(config.s3);
  t.teardown(() => objects.close());
  const responses = new ResponseStore(new StoredFramesStore(redis, payloads), objects);
  await responses.keep(
    { requestId: id, accountId: account.id, jobAttempt: 1 },
    Buffer.from('{"from": "the first attempt"}'),
  );
  t.is((await readJob(stack, account, id)).response ?? null, null);
  await expireJobLeases(redis);
  const worker = await stack.startWorker({ queues: ['chat'] });
  t.is((await waitForJobRecord(account.id, id)).attempts, 2);
  const shown = await readJob(stack, account, id);
  t.is(shown.response!['id'], id);
  await checkPaidOnce(t, account, 1);
  await worker.stop();
});

test('a worker that resumes after its lease expired neither charges nor ends the job, because another worker now runs it', async (t) => {
  const account = await stack.createAccount();
  const first = await startRole(t, 'worker', stack.env);
  const held = vendor.hold('gpt');
  t.teardown(() => held.end());
  const id = await enqueueChat(stack, account.id, 'chat');
  await waitFor('the call', () => held.waiting === 1);
  first.child.kill('SIGSTOP');
  // The vendor's response arrives while the worker is frozen.
  held.release(1);
  await startRole(t, 'worker', stack.env);
  await expireJobLeases(stack.redis);
  await waitFor('the call of the other worker', () => held.waiting === 1);
  await waitForJobRecord(account.id, id, ({ status, attempts }) => status === 'active' && attempts === 2);
  first.child.kill('SIGCONT');
  t.is(await first.terminate(), 0);
  t.like(await findJob(account.id, id), { status: 'active', attempts: 2 });
  t.is((await stack.readAccount(account.id)).balanceNano, parseRub('100')!);
  held.end();
  const ended = await waitForJobRecord(account.id, id);
  t.is(ended.attempts, 2);
  await checkPaidOnce(t, account, 1);
  t.is((await readJob(stack, account, id)).response!['id'], id);
});

test('if an api process dies after admission, its reservation is released by the sweep and no job is created', async (t) => {
  const { redis } = stack;
  const account = await stack.createAccount();
  const job = await admitChat(stack, account.id, 'chat');
  await ageReservation(redis, account.id, job.id, 60_000);
  await sweep();
  t.is((await stack.readAccount(account.id)).reservedNano, 0n);
  // Even if the api process had only been frozen, it could not enqueue the job now, because the reservation is gone.
  await t.throwsAsync(placeJob(redis, redis, job), { message: /Send it again/ });
  t.is(
    (await releaseReservation(redis, { requestId: job.id, accountId: account.id, claimHash: null })).outcome,
    'absent',
  );
  t.deepEqual(await listAllJobs(redis, account.id), []);
});

test('if an api process dies before queuing a job for fair scheduling, the job still runs and its reservation is not swept', async (t) => {
  const { redis } = stack;
  const account = await stack.createAccount();
  const job = await admitChat(stack, account.id, 'chat');
  await ageReservation(redis, account.id, job.id, 60_000);
  await placeJob(redis, redis, job);
  await sweep();
  t.true((await stack.readAccount(account.id)).reservedNano > 0n);
  t.is(await redis.hexists(redisKeys.orphans(shardOf(account.id)), job.id), 0);
  const worker = await stack.startWorker({ queues: ['chat'] });
  await waitForJobRecord(account.id, job.id);
  await checkPaidOnce(t, account, 1);
  await worker.stop();
});

testWithOwnStore('Redis')(
  'if Redis restarts, queued and active jobs still succeed, and each is charged once',
  async (t) => {
    const account = await stack.createAccount();
    const first = await startRole(t, 'worker', stack.env, ['--queues', 'chat', '--concurrency', '4']);
    const held = vendor.hold('gpt');
    t.teardown(() => held.end());
    for (let i = 0; i < 20; i++) await enqueueChat(stack, account.id, 'chat');
    await waitFor('the calls', () => held.waiting === 4);
    await stack.killRedis();
    // Responses arrive while nothing can be stored or settled.
    const before = vendor.requests.counters.total;
    held.end();
    await waitFor('the responses', () => held.waiting === 0);
    t.is(vendor.requests.counters.total, before);
    await stack.restartRedis();
    await waitUntilReady(stack.redis);
    await waitForAllJobs([account]);
    await checkPaidOnce(t, account, 20);
    const jobs = await listAllJobs(stack.redis, account.id);
    t.true(jobs.every((job) => findTransition(job, 'active') !== null));
    await checkLedger(t);
    t.is(await first.terminate(), 0);
  },
);

/** Ids of the jobs with a status, from the accounts' job lists. */
const listIds = async (accounts: readonly TestAccount[], status: string): Promise<string[]> => {
  const lists = accounts.map(({ id }) => stack.redis.zrevrange(redisKeys.jobsList(id, status), 0, -1));
  return (await Promise.all(lists)).flat();
};

// This test is the last, because most of its jobs are still queued at its end.
test('if all workers restart with 10 000 queued and 64 active jobs, no job is lost or charged twice', async (t) => {
  t.timeout(120_000);
  const accounts = await Promise.all(Array.from({ length: 16 }, () => stack.createAccount()));
  const total = 10_064;
  // In batches: if ten thousand commands were sent at the same time, some would time out.
  for (let from = 0; from < total; from += 592) {
    const ids = accounts.flatMap(({ id }) => Array.from({ length: 37 }, () => id));
    await Promise.all(ids.map((id) => enqueueChat(stack, id, 'chat')));
  }
  const held = vendor.hold('gpt');
  t.teardown(() => held.end());
  const startBoth = () =>
    Promise.all(
      [1, 2].map(() => startRole(t, 'worker', stack.env, ['--queues', 'chat', '--concurrency', '32'])),
    );
  const first = await startBoth();
  await waitFor('64 calls', () => held.waiting === 64);
  const active = await listIds(accounts, 'a');
  t.is(active.length, 64);
  t.is((await listIds(accounts, 'q')).length, total - 64);
  await Promise.all(first.map((worker) => worker.kill()));
  held.end();
  const second = await startBoth();
  await waitFor('the active jobs to run again', async () => {
    const ended = new Set(await listIds(accounts, 's'));
    return active.every((id) => ended.has(id));
  });
  await Promise.all(second.map((worker) => worker.terminate()));

  const waiting = await listIds(accounts, 'q');
  const ended = await listIds(accounts, 's');
  t.true(ended.length > active.length, 'some of the queued jobs have run as well');
  t.is(new Set([...waiting, ...ended]).size, total);
  t.is(waiting.length + ended.length, total);
  for (const { id } of accounts) {
    const jobs = await listAllJobs(stack.redis, id);
    const { balanceNano, reservedNano } = await stack.readAccount(id);
    const open = jobs.filter((job) => !hasEnded(job));
    const queued = await stack.redis.zcard(redisKeys.jobsWaiting(id, 'chat', 'chat'));
    t.is(queued, open.length, 'each open job is queued');
    t.is(reservedNano, chatReservedNano * BigInt(open.length));
    t.is(parseRub('100')! - balanceNano, sumReceipts(jobs));
    for (const job of jobs.filter((one) => active.includes(one.id))) t.is(job.attempts, 2);
  }
  await checkLedger(t);
});
