import { randomUUID } from 'node:crypto';
import test, { type ExecutionContext } from 'ava';
import { cancelJob } from '../../../shared/jobs/end-job-scripts.ts';
import type { JobRecord } from '../../../shared/jobs/job-record.ts';
import { hasEnded } from '../../../shared/jobs/job-record.ts';
import { JobStore } from '../../../shared/jobs/job-store.ts';
import { redisKeys } from '../../../shared/redis/redis-keys.ts';
import { readBalance } from '../../support/billing.ts';
import { createJob } from '../../support/jobs.ts';
import { chatReservedNano, placeChat } from '../../support/place-jobs.ts';
import { startScriptedVendor, wholeChat } from '../../support/scripted-vendor.ts';
import { useStack, type TestStack } from '../../support/stack.ts';
import { waitFor } from '../../support/wait-for.ts';

async function whenEnded({ redis }: TestStack, accountId: string, id: string): Promise<JobRecord> {
  return await waitFor('the job to end', async () => {
    const found = await new JobStore(redis).find(accountId, id);
    return found !== null && hasEnded(found.job) ? found.job : null;
  });
}

async function expectNothingHeld(
  t: ExecutionContext,
  { redis }: TestStack,
  accountId: string,
): Promise<void> {
  const { reserved, freeHeld } = await readBalance(redis, accountId);
  t.is(reserved, 0n);
  t.is(freeHeld, 0);
  const held = await redis.hgetall(redisKeys.jobsHeld(accountId));
  t.deepEqual(
    Object.entries(held).filter(([name, value]) => name !== 'bytes' && value !== '0'),
    [],
  );
}

test('a job is run, charged once and kept with its answer, and holds nothing any more', async (t) => {
  const stack = await useStack(t);
  const { id: accountId } = await stack.createAccount();
  const before = await readBalance(stack.redis, accountId);
  const id = await placeChat(stack, accountId, 'demo-echo');
  const job = await whenEnded(stack, accountId, id);
  t.is(job.status, 'succeeded');
  t.deepEqual(
    job.transitions.map(({ status }) => status),
    ['queued', 'active', 'succeeded'],
  );
  const after = await readBalance(stack.redis, accountId);
  t.true(job.receipt!.costNano > 0n);
  t.is(before.balance - after.balance, job.receipt!.costNano);
  await expectNothingHeld(t, stack, accountId);
  t.true((await stack.redis.strlen(redisKeys.keptFrames(accountId, id))) > 0);
  t.is(await stack.redis.exists(redisKeys.jobBody(accountId, id)), 0);
});

test('a cancelled job that waits is refunded and never runs', async (t) => {
  const stack = await useStack(t, { workers: [] });
  const { id: accountId } = await stack.createAccount();
  const id = await placeChat(stack, accountId, 'demo-echo');
  t.is((await readBalance(stack.redis, accountId)).reserved, chatReservedNano);
  t.is((await cancelJob(stack.redis, accountId, id)).outcome, 'cancelled');
  await expectNothingHeld(t, stack, accountId);
  await stack.startWorker();
  const second = await placeChat(stack, accountId, 'demo-echo');
  await whenEnded(stack, accountId, second);
  const { job } = (await new JobStore(stack.redis).find(accountId, id))!;
  t.is(job.status, 'cancelled');
  t.is(job.attempts, 0);
});

interface HeldCall {
  readonly accounts: string;
  readonly end: () => void;
}

const message = (content: string): object => ({
  model: 'chat',
  messages: [{ role: 'user', content }],
  max_tokens: 5,
});
/** Several calls of the vendor each, as many inputs as it takes in one. */
const inputs = (content: string): object => ({
  model: 'embedding',
  input: Array.from({ length: 200 }, () => `${content} ${randomUUID()}`),
});

for (const { what, path, body } of [
  { what: 'chats', path: '/v1/chat/completions', body: message },
  { what: 'embeddings', path: '/v1/embeddings', body: inputs },
]) {
  test(`one account's backlog of ${what} delays another's single job by what runs and one more call`, async (t) => {
    const calls: HeldCall[] = [];
    let isOver = false;
    const vendor = await startScriptedVendor(async ({ input, messages }) => {
      const texts = (input ?? [(messages as { content: string }[])[0]!.content]) as string[];
      const accounts = [...new Set(texts.map((text) => text.split(' ')[0]!))].join(' ');
      if (!isOver) await new Promise<void>((end) => calls.push({ accounts, end }));
      return input === undefined ? wholeChat : answerWithVectors(texts.length);
    });
    t.teardown(() => vendor.close());
    const stack = await useStack(t, {
      catalog: `
upstreams: { narrow: { kind: openai, baseUrl: '${vendor.url}/v1', maxConcurrency: 1, maxBatchInputs: 50 } }
models:
  - id: chat
    type: chat
    context: 8192
    pricing: { type: tokens, prompt: 100, completion: 200 }
    routes: [{ upstream: narrow, model: chat }]
  - id: embedding
    type: embedding
    context: 8192
    dimensions: { default: 2, adjustable: false }
    pricing: { type: tokens, prompt: 100 }
    routes: [{ upstream: narrow, model: embedding }]
`,
    });
    const endAll = (): void => {
      isOver = true;
      for (const { end } of calls) end();
    };
    // Also where the test fails: the worker finishes what it has before it stops.
    t.teardown(endAll);
    const [many, single] = [await stack.createAccount(), await stack.createAccount()];
    const backlog = Array.from({ length: 80 }, () => createJob(stack, many, path, body('many')));
    await Promise.all(backlog);
    await waitFor('the first call', () => calls.length === 1);
    const { id } = await createJob(stack, single, path, body('single'));
    // However many of the other's jobs wait in the worker, this one is taken while the first call still runs.
    await waitFor('the job to be taken', async () => {
      return (await new JobStore(stack.redis).find(single.id, id))?.job.attempts === 1;
    });
    const started: string[] = [];
    while (!started.join(' ').includes('single') && started.length < 10) {
      const { length } = calls;
      calls[length - 1]!.end();
      await waitFor('the next call', () => calls.length > length);
      started.push(calls.at(-1)!.accounts);
    }
    t.true(started.length <= 2, started.join(', '));
    endAll();
    t.is((await whenEnded(stack, single.id, id)).status, 'succeeded');
  });
}

const answerWithVectors = (count: number): object => ({
  object: 'list',
  model: 'embedding',
  data: Array.from({ length: count }, (_, index) => ({ object: 'embedding', index, embedding: [1, 0] })),
  usage: { prompt_tokens: count, total_tokens: count },
});
