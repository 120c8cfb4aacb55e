import { randomUUID } from 'node:crypto';
import { EventEmitter, once } from 'node:events';
import test from 'ava';
import { DurableJobs } from '../../../api/jobs/durable-jobs.ts';
import { AppError } from '../../../shared/contract/errors.ts';
import { placeJob } from '../../../shared/jobs/place-job-script.ts';
import { takeJob } from '../../../shared/jobs/run-job-scripts.ts';
import type { AdmittedRequest } from '../../../shared/billing/admitted-request.ts';
import type { ChatJob } from '../../../shared/queue/job-kinds.ts';
import type { RedisClient } from '../../../shared/redis/redis-client.ts';
import { redisKeys, shardOf } from '../../../shared/redis/redis-keys.ts';
import { createLogger } from '../../../shared/runtime/logger.ts';
import { readBalance } from '../../support/billing.ts';
import { openBooks, type Books } from '../../support/books.ts';
import { admitChat, chatReservedNano } from '../../support/place-jobs.ts';

const model = 'demo-echo';

let books: Books;
test.before(async () => {
  books = await openBooks();
});
test.after.always(() => books.close());

type Arguments = readonly unknown[];

/** Redis whose scripts fail as its client's commands do: before Redis has run them, or after. */
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
        if (isScript && fails.before?.(args) === true) throw new Error('Connection is closed');
        const answer: unknown = await (value as (...given: unknown[]) => unknown).apply(target, args);
        if (isScript && fails.after?.(args) === true) throw new Error('Command timed out');
        return answer;
      };
    },
  });
}

const createJobs = (redis: RedisClient, payloads = redis): DurableJobs =>
  new DurableJobs({
    redis,
    payloads,
    kept: { fail: () => undefined },
    log: createLogger('test', 'silent'),
  });

const isPlacing = (args: Arguments): boolean => args.includes('chat.completions');

interface Scene {
  readonly accountId: string;
  readonly request: AdmittedRequest;
  readonly jobs: DurableJobs;
  readonly place: () => ReturnType<DurableJobs['place']>;
}

/** An admitted request of an account of its own, at an api that has this Redis, whose clock is this much ahead. */
async function setScene(options: {
  redis?: RedisClient;
  payloads?: RedisClient;
  bounds?: { maxQueuedJobs?: number };
  aheadMs?: number;
  timeoutMs?: number;
  content?: string;
}): Promise<Scene> {
  const { redis = books.redis, payloads = redis, bounds, content } = options;
  const { aheadMs = 0, timeoutMs = 60_000 } = options;
  const { id: accountId } = await books.createAccount({ balanceNano: 100_000_000_000n });
  if (bounds !== undefined) await books.hotAccounts.update(accountId, bounds);
  const admitted = await admitChat(books, accountId, model, content);
  const { job } = JSON.parse(admitted.body.toString()) as { job: ChatJob };
  const admittedAtMs = Date.now() + aheadMs;
  const request = { ...job.request, admittedAtMs, deadlineAtMs: admittedAtMs + timeoutMs };
  const jobs = createJobs(redis, payloads);
  const work = { operation: 'chat.completions', format: null, webhookUrl: null } as const;
  return {
    accountId,
    request,
    jobs,
    place: () => jobs.place(request, { ...work, job: { ...job, request } }),
  };
}

test('a job that was placed is answered as such although the answer of Redis was lost', async (t) => {
  let lost = 0;
  const redis = createFailing(books.redis, { after: (args) => isPlacing(args) && (lost += 1) === 1 });
  const { accountId, request, place } = await setScene({ redis });
  const shown = await place();
  t.is(lost, 1);
  t.is(shown.job.id, request.requestId);
  t.is(shown.job.status, 'queued');
  t.is((await readBalance(books.redis, accountId)).reserved, chatReservedNano);
});

test('so it is where Redis stays away for a moment, and where nobody can say which place the job has', async (t) => {
  let refused = 0;
  let isPlaced = false;
  const redis = createFailing(books.redis, {
    before: (args) => {
      if (args.includes(redisKeys.jobServiceTimes('chat', model))) return true;
      if (!isPlaced || refused === 2) return false;
      refused += 1;
      return true;
    },
    after: (args) => (isPlaced ||= isPlacing(args)) && refused === 0,
  });
  const { accountId, request, place } = await setScene({ redis });
  const shown = await place();
  t.is(refused, 2);
  t.is(shown.job.id, request.requestId);
  t.deepEqual(shown.standing, { position: null, etaSeconds: null });
  t.is((await readBalance(books.redis, accountId)).reserved, chatReservedNano);
});

test('a request whose job was not placed holds nothing once Redis is back', async (t) => {
  let refused = 0;
  const redis = createFailing(books.redis, { before: () => (refused += 1) <= 2 });
  const { accountId, place } = await setScene({ redis });
  const failure = await t.throwsAsync(place(), { instanceOf: AppError });
  t.is(failure?.code, 'service_unavailable');
  t.is((await readBalance(books.redis, accountId)).reserved, 0n);
});

test('a request whose job is refused holds nothing any more', async (t) => {
  const { accountId, place } = await setScene({ bounds: { maxQueuedJobs: 0 } });
  const refusal = await t.throwsAsync(place(), { instanceOf: AppError });
  t.is(refusal?.code, 'too_many_jobs');
  t.is((await readBalance(books.redis, accountId)).reserved, 0n);
});

for (const aheadMs of [-5_000, 5_000]) {
  test(`an api whose clock is ${aheadMs} ms ahead changes nothing of a job's times: they are Redis's`, async (t) => {
    const { redis } = books;
    const readMs = async (): Promise<number> => Number((await redis.time())[0]) * 1_000;
    const before = await readMs();
    const { accountId, place } = await setScene({ aheadMs, timeoutMs: 3_000 });
    const { job } = await place();
    t.true(job.createdAtMs >= before && job.createdAtMs <= (await readMs()) + 1_000);
    t.is(job.deadlineAtMs, job.createdAtMs + 3_000);
    const deadlines = redisKeys.jobDeadlines(shardOf(accountId));
    t.is(Number(await redis.zscore(deadlines, `${accountId} ${job.id}`)), job.deadlineAtMs);
    const taken = await takeJob(redis, { queue: 'chat', model }, accountId, 'worker');
    t.is(taken.job?.id, job.id);
  });
}

test('a request is in hand for as long as its job is being placed', async (t) => {
  const ofBody = new EventEmitter();
  const payloads = new Proxy(books.redis, {
    get: (target, name) =>
      name === 'set'
        ? async (...args: Parameters<RedisClient['set']>) => {
            setImmediate(() => ofBody.emit('sent'));
            await once(ofBody, 'goes on');
            return await target.set(...args);
          }
        : (Reflect.get(target, name, target) as unknown),
  });
  const { jobs, request, place } = await setScene({ payloads, content: 'x'.repeat(100_000) });
  const placed = place();
  await once(ofBody, 'sent');
  t.deepEqual([...jobs.placing()], [request]);
  ofBody.emit('goes on');
  await placed;
  t.deepEqual([...jobs.placing()], []);
});

/** Another process, whose calls of this command do something else. */
function replaceCommand(redis: RedisClient, command: string, instead: () => unknown): RedisClient {
  return new Proxy(redis, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name, target);
      if (typeof value !== 'function') return value;
      const method = value as (...given: unknown[]) => unknown;
      return (...args: unknown[]): unknown =>
        name === command ? instead.call(null) : method.apply(target, args);
    },
  });
}

test('who prefers a job of a request that has ended without one does not wait for one, and of a new one gets it', async (t) => {
  const { id: accountId } = await books.createAccount({ balanceNano: 100_000_000_000n });
  const { signal } = new AbortController();
  let looks = 0;
  const admitted = await admitChat(books, accountId, 'demo-echo');
  // It is admitted when it is looked for first, and placed just before the second look.
  const placing = replaceCommand(books.redis, 'hexists', async () => {
    looks += 1;
    if (looks === 2) await placeJob(books.redis, books.redis, admitted);
    return looks === 1 ? 1 : 0;
  });
  t.is((await createJobs(placing).findWhenPlaced(accountId, admitted.id, signal))?.job.id, admitted.id);
  t.is(looks, 2);
  const ended = replaceCommand(books.redis, 'hexists', async () => {
    looks += 1;
    return 0;
  });
  t.is(await createJobs(ended).findWhenPlaced(accountId, randomUUID(), signal), null);
  t.is(looks, 3);
});

test('a cancel that its worker cannot be told of is a cancel all the same', async (t) => {
  const { id: accountId } = await books.createAccount({ balanceNano: 100_000_000_000n });
  const job = await admitChat(books, accountId, 'demo-echo');
  await placeJob(books.redis, books.redis, job);
  await takeJob(books.redis, { queue: 'chat', model: 'demo-echo' }, accountId, 'a-worker');
  const mute = replaceCommand(books.redis, 'spublish', async () => {
    throw new Error('Connection is closed.');
  });
  t.true(await createJobs(mute).cancel(accountId, job.id));
  t.true((await createJobs(books.redis).find(accountId, job.id))!.job.isCancelRequested);
});
