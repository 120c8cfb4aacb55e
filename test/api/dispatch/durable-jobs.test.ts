import { randomUUID } from 'node:crypto';
import test from 'ava';
import { DurableJobs } from '../../../api/dispatch/durable-jobs.ts';
import { AppError } from '../../../shared/contract/errors.ts';
import { placeJob } from '../../../shared/jobs/place-job-script.ts';
import { takeJob } from '../../../shared/jobs/run-job-scripts.ts';
import type { AdmittedRequest, ChatJob } from '../../../shared/queue/job-kinds.ts';
import type { RedisClient } from '../../../shared/redis/redis-client.ts';
import { createLogger } from '../../../shared/runtime/logger.ts';
import { readBalance } from '../../support/billing.ts';
import { openBooks, type Books } from '../../support/books.ts';
import { admitChat, chatReservedNano } from '../../support/place-jobs.ts';

let books: Books;
test.before(async () => {
  books = await openBooks();
});
test.after.always(() => books.close());

/** Redis does what it is asked, and its answer to one script is lost. */
function loseAnswer(redis: RedisClient, isLost: (args: readonly unknown[]) => boolean): RedisClient {
  return new Proxy(redis, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name, target);
      if (typeof value !== 'function') return value;
      return async (...args: unknown[]): Promise<unknown> => {
        const answer: unknown = await (value as (...given: unknown[]) => unknown).apply(target, args);
        if ((name === 'evalsha' || name === 'eval') && isLost(args)) throw new Error('Command timed out');
        return answer;
      };
    },
  });
}

test('a job that was placed is answered as such although the answer of Redis was lost', async (t) => {
  const { id: accountId } = await books.createAccount({ balanceNano: 100_000_000_000n });
  const admitted = await admitChat(books, accountId, 'demo-echo');
  const { job } = JSON.parse(admitted.body.toString()) as { job: ChatJob };
  let lost = 0;
  const redis = loseAnswer(books.redis, (args) => args.includes('chat.completions') && (lost += 1) === 1);
  const jobs = createJobs(redis);
  const work = { operation: 'chat.completions', job, format: null, webhookUrl: null } as const;
  const request: AdmittedRequest = job.request;
  const shown = await jobs.place(request, work);
  t.is(lost, 1);
  t.is(shown.job.id, admitted.id);
  t.is(shown.job.status, 'queued');
  t.is((await readBalance(books.redis, accountId)).reserved, chatReservedNano);
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

const createJobs = (redis: RedisClient): DurableJobs =>
  new DurableJobs({
    redis,
    payloads: redis,
    kept: { fail: () => undefined },
    log: createLogger('test', 'silent'),
  });

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
  const mute = replaceCommand(books.redis, 'publish', async () => {
    throw new Error('Connection is closed.');
  });
  t.true(await createJobs(mute).cancel(accountId, job.id));
  t.true((await createJobs(books.redis).find(accountId, job.id))!.job.isCancelRequested);
});

test('a request whose job is refused holds nothing any more', async (t) => {
  const { id: accountId } = await books.createAccount({ balanceNano: 100_000_000_000n });
  await books.hotAccounts.update(accountId, { maxQueuedJobs: 0 });
  const admitted = await admitChat(books, accountId, 'demo-echo');
  const { job } = JSON.parse(admitted.body.toString()) as { job: ChatJob };
  const { redis } = books;
  const jobs = createJobs(redis);
  const work = { operation: 'chat.completions', job, format: null, webhookUrl: null } as const;
  const refusal = await t.throwsAsync(jobs.place(job.request, work), { instanceOf: AppError });
  t.is(refusal?.code, 'too_many_jobs');
  t.is((await readBalance(redis, accountId)).reserved, 0n);
});
