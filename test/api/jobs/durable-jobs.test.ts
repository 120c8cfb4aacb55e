import { randomUUID } from 'node:crypto';
import { EventEmitter, once } from 'node:events';
import test from 'ava';
import { changeAccount } from '../../../shared/accounts/change-account.ts';
import { DurableJobs } from '../../../api/jobs/durable-jobs.ts';
import { AppError } from '../../../shared/contract/errors.ts';
import { placeJob } from '../../../shared/work/jobs/place-job-script.ts';
import { takeJob } from '../../../shared/work/jobs/run-job-scripts.ts';
import type { AdmittedRequest } from '../../../shared/money/admitted-request.ts';
import type { ChatJob } from '../../../shared/work/queue/job-kinds.ts';
import type { RedisClient } from '../../../shared/platform/redis/redis-client.ts';
import { redisKeys, shardOf } from '../../../shared/platform/redis/redis-keys.ts';
import { createLogger } from '../../../shared/platform/runtime/logger.ts';
import { readBalance } from '../../support/billing.ts';
import { openLedgerServices, type LedgerServices } from '../../support/ledger-services.ts';
import { admitChat, chatReservedNano, enqueueChat } from '../../support/place-jobs.ts';

const model = 'demo-echo';

let services: LedgerServices;
test.before(async () => {
  services = await openLedgerServices();
});
test.after.always(() => services.close());

type Arguments = readonly unknown[];

/** A Redis client whose script calls fail, before or after Redis has run the script. */
function createFailing(
  redis: RedisClient,
  fails: { readonly before?: (args: Arguments) => boolean; readonly after?: (args: Arguments) => boolean },
): RedisClient {
  return new Proxy(redis, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name, target);
      if (typeof value !== 'function') return value;
      return async (...args: unknown[]): Promise<unknown> => {
        const isScript = name === 'evalsha' || name === 'eval';
        // A list counts as its elements.
        const values = args.flat();
        if (isScript && fails.before?.(values) === true) throw new Error('Connection is closed');
        const reply: unknown = await (value as (...given: unknown[]) => unknown).apply(target, args);
        if (isScript && fails.after?.(values) === true) throw new Error('Command timed out');
        return reply;
      };
    },
  });
}

const createJobs = (redis: RedisClient, payloads = redis): DurableJobs =>
  new DurableJobs({
    redis,
    payloads,
    storedResponses: { fail: () => undefined },
    log: createLogger('test', 'silent'),
  });

const isPlacement = (args: Arguments): boolean => args.includes('chat.completions');

interface Setup {
  readonly accountId: string;
  readonly request: AdmittedRequest;
  readonly jobs: DurableJobs;
  readonly place: () => ReturnType<DurableJobs['place']>;
}

/** An admitted request of a new account, at an api process with this Redis client and a clock `aheadMs` ahead. */
async function setUp(options: {
  redis?: RedisClient;
  payloads?: RedisClient;
  bounds?: { maxQueuedJobs?: number };
  aheadMs?: number;
  timeoutMs?: number;
  content?: string;
}): Promise<Setup> {
  const { redis = services.redis, payloads = redis, bounds, content } = options;
  const { aheadMs = 0, timeoutMs = 60_000 } = options;
  const { id: accountId } = await services.createAccount({ balanceNano: 100_000_000_000n });
  if (bounds !== undefined) await changeAccount(services, accountId, bounds);
  const admitted = await admitChat(services, accountId, model, content);
  const { job } = JSON.parse(admitted.body.toString()) as { job: ChatJob };
  const admittedAtMs = Date.now() + aheadMs;
  const request = { ...job.request, admittedAtMs, deadlineAtMs: admittedAtMs + timeoutMs };
  const jobs = createJobs(redis, payloads);
  const unset = { cancelAfterMs: null, webhookUrl: null, webhookEvents: [], publicUrl: '' } as const;
  const work = { operation: 'chat.completions', format: null, ...unset } as const;
  return {
    accountId,
    request,
    jobs,
    place: () => jobs.place(request, { ...work, job: { ...job, request } }),
  };
}

test('a job that was enqueued is reported as enqueued even if the reply from Redis was lost', async (t) => {
  let lostReplies = 0;
  const redis = createFailing(services.redis, {
    after: (args) => isPlacement(args) && (lostReplies += 1) === 1,
  });
  const { accountId, request, place } = await setUp({ redis });
  const placed = await place();
  t.is(lostReplies, 1);
  t.is(placed.job.id, request.requestId);
  t.is(placed.job.status, 'queued');
  t.is((await readBalance(services.redis, accountId)).reserved, chatReservedNano);
});

test('an enqueued job is reported as such despite a short Redis outage, with an unknown position if the position cannot be read', async (t) => {
  let failures = 0;
  let isPlaced = false;
  const redis = createFailing(services.redis, {
    before: (args) => {
      if (args.includes(redisKeys.jobServiceTimes('chat', model))) return true;
      if (!isPlaced || failures === 2) return false;
      failures += 1;
      return true;
    },
    after: (args) => (isPlaced ||= isPlacement(args)) && failures === 0,
  });
  const { accountId, request, place } = await setUp({ redis });
  const placed = await place();
  t.is(failures, 2);
  t.is(placed.job.id, request.requestId);
  t.deepEqual(placed.estimate, { position: null, etaSeconds: null });
  t.is((await readBalance(services.redis, accountId)).reserved, chatReservedNano);
});

test('if a job could not be enqueued, its reservation is released once Redis is available again', async (t) => {
  let failures = 0;
  const redis = createFailing(services.redis, { before: () => (failures += 1) <= 2 });
  const { accountId, place } = await setUp({ redis });
  const failure = await t.throwsAsync(place(), { instanceOf: AppError });
  t.is(failure?.code, 'service_unavailable');
  t.is((await readBalance(services.redis, accountId)).reserved, 0n);
});

test('if a job is rejected, its reservation is released', async (t) => {
  const { accountId, place } = await setUp({ bounds: { maxQueuedJobs: 0 } });
  const rejection = await t.throwsAsync(place(), { instanceOf: AppError });
  t.is(rejection?.code, 'too_many_jobs');
  t.is((await readBalance(services.redis, accountId)).reserved, 0n);
});

for (const aheadMs of [-5_000, 5_000]) {
  test(`job times come from Redis's clock, even if the api's clock is ${aheadMs} ms ahead`, async (t) => {
    const { redis } = services;
    const readMs = async (): Promise<number> => Number((await redis.time())[0]) * 1_000;
    const before = await readMs();
    const { accountId, place } = await setUp({ aheadMs, timeoutMs: 3_000 });
    const { job } = await place();
    t.true(job.createdAtMs >= before && job.createdAtMs <= (await readMs()) + 1_000);
    t.is(job.deadlineAtMs, job.createdAtMs + 3_000);
    const deadlines = redisKeys.jobDeadlines(shardOf(accountId));
    t.is(Number(await redis.zscore(deadlines, `${accountId} ${job.id}`)), job.deadlineAtMs);
    const dispatch = await takeJob(redis, { queue: 'chat', model }, accountId, 'worker');
    t.is(dispatch.job?.id, job.id);
  });
}

test('the heartbeat covers a request while its job is being enqueued', async (t) => {
  const events = new EventEmitter();
  const payloads = new Proxy(services.redis, {
    get: (target, name) =>
      name === 'set'
        ? async (...args: Parameters<RedisClient['set']>) => {
            setImmediate(() => events.emit('sent'));
            await once(events, 'continue');
            return await target.set(...args);
          }
        : (Reflect.get(target, name, target) as unknown),
  });
  const { jobs, request, place } = await setUp({ payloads, content: 'x'.repeat(100_000) });
  const placement = place();
  await once(events, 'sent');
  t.deepEqual([...jobs.placing()], [request]);
  events.emit('continue');
  await placement;
  t.deepEqual([...jobs.placing()], []);
});

/** A Redis client in which one command calls `replacement` instead. */
function replaceCommand(redis: RedisClient, command: string, replacement: () => unknown): RedisClient {
  return new Proxy(redis, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name, target);
      if (typeof value !== 'function') return value;
      const method = value as (...given: unknown[]) => unknown;
      return (...args: unknown[]): unknown => (name === command ? replacement() : method.apply(target, args));
    },
  });
}

test('findOnceCreated waits for a job that is still being enqueued, but not for a request that ended without a job', async (t) => {
  const { id: accountId } = await services.createAccount({ balanceNano: 100_000_000_000n });
  const { signal } = new AbortController();
  let checks = 0;
  const admitted = await admitChat(services, accountId, 'demo-echo');
  // The request is admitted at the first check, and enqueued just before the second.
  const placing = replaceCommand(services.redis, 'hexists', async () => {
    checks += 1;
    if (checks === 2) await placeJob(services.redis, services.redis, admitted);
    return checks === 1 ? 1 : 0;
  });
  t.is((await createJobs(placing).findOnceCreated(accountId, admitted.id, signal))?.job.id, admitted.id);
  t.is(checks, 2);
  const ended = replaceCommand(services.redis, 'hexists', async () => {
    checks += 1;
    return 0;
  });
  t.is(await createJobs(ended).findOnceCreated(accountId, randomUUID(), signal), null);
  t.is(checks, 3);
});

test('a page of waiting jobs takes at most three scripts: the jobs, the outlook of their model, and lower positions', async (t) => {
  const { id: accountId } = await services.createAccount({ balanceNano: 100_000_000_000n });
  for (let i = 0; i < 20; i++) await enqueueChat(services, accountId, 'demo-echo');
  // Loads the script, so that it is not sent again as text below.
  await createJobs(services.redis).list(randomUUID(), null, { page: 1, pageSize: 1 });
  const scripts: Arguments[] = [];
  const redis = createFailing(services.redis, { before: (args) => scripts.push(args) === 0 });
  const read = async () => {
    scripts.length = 0;
    // Outlooks are cached by each instance.
    const { jobs } = await createJobs(redis).list(accountId, null, { page: 1, pageSize: 20 });
    return jobs.map(({ estimate }) => estimate.position!);
  };
  const positions = await read();
  t.true(scripts.length <= 3, `${scripts.length} scripts`);
  // Newest first. Jobs of other tests may start before them.
  t.true(
    positions.every((position, i) => i === 0 || position < positions[i - 1]!),
    positions.join(),
  );
  const repeated = await read();
  t.true(repeated.every((position, i) => position <= positions[i]!));
  t.true(scripts.length <= 3, `${scripts.length} scripts`);
});

test('a cancel succeeds even if the worker cannot be notified', async (t) => {
  const { id: accountId } = await services.createAccount({ balanceNano: 100_000_000_000n });
  const job = await admitChat(services, accountId, 'demo-echo');
  await placeJob(services.redis, services.redis, job);
  await takeJob(services.redis, { queue: 'chat', model: 'demo-echo' }, accountId, 'a-worker');
  const failingRedis = replaceCommand(services.redis, 'spublish', async () => {
    throw new Error('Connection is closed.');
  });
  t.true(await createJobs(failingRedis).cancel(accountId, job.id));
  t.true((await createJobs(services.redis).find(accountId, job.id))!.job.isCancelRequested);
});
