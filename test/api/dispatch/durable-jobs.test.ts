import test from 'ava';
import { DurableJobs } from '../../../api/dispatch/durable-jobs.ts';
import { AppError } from '../../../shared/contract/errors.ts';
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
  const log = createLogger('test', 'silent');
  const jobs = new DurableJobs({ redis, payloads: redis, kept: { fail: () => undefined }, log });
  const work = { operation: 'chat.completions', job, format: null, webhookUrl: null } as const;
  const request: AdmittedRequest = job.request;
  const shown = await jobs.place(request, work);
  t.is(lost, 1);
  t.is(shown.job.id, admitted.id);
  t.is(shown.job.status, 'queued');
  t.is((await readBalance(books.redis, accountId)).reserved, chatReservedNano);
});

test('a request whose job is refused holds nothing any more', async (t) => {
  const { id: accountId } = await books.createAccount({ balanceNano: 100_000_000_000n });
  await books.hotAccounts.update(accountId, { maxQueuedJobs: 0 });
  const admitted = await admitChat(books, accountId, 'demo-echo');
  const { job } = JSON.parse(admitted.body.toString()) as { job: ChatJob };
  const { redis } = books;
  const log = createLogger('test', 'silent');
  const jobs = new DurableJobs({ redis, payloads: redis, kept: { fail: () => undefined }, log });
  const work = { operation: 'chat.completions', job, format: null, webhookUrl: null } as const;
  const refusal = await t.throwsAsync(jobs.place(job.request, work), { instanceOf: AppError });
  t.is(refusal?.code, 'too_many_jobs');
  t.is((await readBalance(redis, accountId)).reserved, 0n);
});
