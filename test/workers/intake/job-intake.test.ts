import { writeFile } from 'node:fs/promises';
import { randomUUID } from 'node:crypto';
import test, { type ExecutionContext } from 'ava';
import { operations } from '../../../api/contract/operations.ts';
import { cancelJob } from '../../../shared/work/jobs/end-job-scripts.ts';
import type { JobRecord } from '../../../shared/work/jobs/job-record.ts';
import { hasEnded } from '../../../shared/work/jobs/job-record.ts';
import { JobStore } from '../../../shared/work/jobs/job-store.ts';
import { redisKeys, shardOf } from '../../../shared/platform/redis/redis-keys.ts';
import { sendControl } from '../../../shared/work/replies/worker-control.ts';
import { readBalance } from '../../support/billing.ts';
import { createJob } from '../../support/jobs.ts';
import { chatReservedNano, enqueueChat } from '../../support/place-jobs.ts';
import { startScriptedVendor, unstreamedChat } from '../../support/scripted-vendor.ts';
import { useStack, type TestStack } from '../../support/stack.ts';
import { waitFor } from '../../support/wait-for.ts';

const readJob = async ({ redis }: TestStack, accountId: string, id: string): Promise<JobRecord> =>
  (await new JobStore(redis).find(accountId, id))!.job;

async function waitForJob(
  stack: TestStack,
  accountId: string,
  id: string,
  matches: (job: JobRecord) => boolean,
): Promise<JobRecord> {
  return await waitFor('the job', async () => {
    const job = await readJob(stack, accountId, id);
    return matches(job) ? job : null;
  });
}

const waitForEnd = (stack: TestStack, accountId: string, id: string): Promise<JobRecord> =>
  waitForJob(stack, accountId, id, hasEnded);

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

test('a job is run, charged once and stored with its response, and its reservation and queue entries are gone', async (t) => {
  const stack = await useStack(t);
  const { id: accountId } = await stack.createAccount();
  const before = await readBalance(stack.redis, accountId);
  const id = await enqueueChat(stack, accountId, 'demo-echo');
  const job = await waitForEnd(stack, accountId, id);
  t.is(job.status, 'succeeded');
  t.deepEqual(
    job.transitions.map(({ status }) => status),
    ['queued', 'active', 'succeeded'],
  );
  const after = await readBalance(stack.redis, accountId);
  t.true(job.receipt!.costNano > 0n);
  t.is(before.balance - after.balance, job.receipt!.costNano);
  await expectNothingHeld(t, stack, accountId);
  t.true((await stack.redis.strlen(redisKeys.storedFrames(accountId, id))) > 0);
  t.is(await stack.redis.exists(redisKeys.jobBody(accountId, id)), 0);
});

for (const type of operations.createChatCompletion.modelTypes) {
  test(`a job of a model of the type ${type} is run`, async (t) => {
    const catalog = `
upstreams: { builtin: { kind: builtin } }
models:
  - { id: any, type: ${type}, context: 8192, pricing: { prompt: 50, completion: 150 }, routes: [{ upstream: builtin, model: demo-echo }] }
`;
    const stack = await useStack(t, { catalog });
    const { id: accountId } = await stack.createAccount();
    const id = await enqueueChat(stack, accountId, 'any');
    t.is((await waitForEnd(stack, accountId, id)).status, 'succeeded');
  });
}

test('if a job is cancelled while it waits, it never runs and its reservation is refunded', async (t) => {
  const stack = await useStack(t, { workers: [] });
  const { id: accountId } = await stack.createAccount();
  const id = await enqueueChat(stack, accountId, 'demo-echo');
  t.is((await readBalance(stack.redis, accountId)).reserved, chatReservedNano);
  t.is((await cancelJob(stack.redis, accountId, id)).outcome, 'cancelled');
  await expectNothingHeld(t, stack, accountId);
  await stack.startWorker();
  const second = await enqueueChat(stack, accountId, 'demo-echo');
  await waitForEnd(stack, accountId, second);
  t.like(await readJob(stack, accountId, id), { status: 'cancelled', attempts: 0 });
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
/** Enough inputs for several calls to the vendor. */
const inputs = (content: string): object => ({
  model: 'embedding',
  input: Array.from({ length: 200 }, () => `${content} ${randomUUID()}`),
});

for (const { kind, path, body } of [
  { kind: 'chats', path: '/v1/chat/completions', body: message },
  { kind: 'embeddings', path: '/v1/embeddings', body: inputs },
]) {
  test(`many queued ${kind} of one account delay a job of another account only by the running call and one more`, async (t) => {
    const calls: HeldCall[] = [];
    let isDone = false;
    const vendor = await startScriptedVendor(async ({ input, messages }) => {
      const texts = (input ?? [(messages as { content: string }[])[0]!.content]) as string[];
      const accounts = [...new Set(texts.map((text) => text.split(' ')[0]!))].join(' ');
      if (!isDone) await new Promise<void>((end) => calls.push({ accounts, end }));
      return input === undefined ? unstreamedChat : respondWithVectors(texts.length);
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
      isDone = true;
      for (const { end } of calls) end();
    };
    // Needed if the test fails, because the worker finishes its jobs before it stops.
    t.teardown(endAll);
    const [many, single] = [await stack.createAccount(), await stack.createAccount()];
    const backlog = Array.from({ length: 80 }, () => createJob(stack, many, path, body('many')));
    await Promise.all(backlog);
    await waitFor('the first call', () => calls.length === 1);
    const { id } = await createJob(stack, single, path, body('single'));
    // The worker accepts this job while the first call still runs, although many jobs of the other account wait.
    await waitFor('the worker to accept the job', async () => {
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
    t.is((await waitForEnd(stack, single.id, id)).status, 'succeeded');
  });
}

const respondWithVectors = (count: number): object => ({
  object: 'list',
  model: 'embedding',
  data: Array.from({ length: count }, (_, index) => ({ object: 'embedding', index, embedding: [1, 0] })),
  usage: { prompt_tokens: count, total_tokens: count },
});

const pricing = 'pricing: { type: tokens, prompt: 100, completion: 200 }';

test('jobs cancelled while their worker stops end before it exits: generated output is charged, unstarted jobs are not', async (t) => {
  const embeddingCalls: (() => void)[] = [];
  const vendor = await startScriptedVendor(async (_, path, { cut }) => {
    if (path.endsWith('/embeddings')) {
      await new Promise<void>((end) => embeddingCalls.push(end));
      return { data: [] };
    }
    const choice = { index: 0, delta: { role: 'assistant', content: 'one two three' }, finish_reason: null };
    return (async function* () {
      yield JSON.stringify({ choices: [choice] });
      await cut;
    })();
  });
  t.teardown(() => vendor.close());
  const stack = await useStack(t, {
    workers: [],
    catalog: `
upstreams:
  wide: { kind: openai, baseUrl: '${vendor.url}/v1' }
  narrow: { kind: openai, baseUrl: '${vendor.url}/v1', maxConcurrency: 1 }
models:
  - { id: chat, type: chat, context: 8192, ${pricing}, routes: [{ upstream: narrow, model: chat }] }
  - { id: drained, type: chat, context: 8192, ${pricing}, routes: [{ upstream: wide, model: chat, onDisconnect: drain }] }
  - { id: vectors, type: embedding, context: 8192, dimensions: { default: 3 }, pricing: { in_cost_per_million: 7000 }, routes: [{ upstream: wide, model: emb }] }
`,
  });
  const worker = await stack.startWorker();
  const account = await stack.createAccount();
  const { id: accountId } = account;
  const before = await readBalance(stack.redis, accountId);
  const hasOutput = ({ progress }: JobRecord): boolean => progress !== null;
  const generated = [];
  for (const model of ['chat', 'drained']) {
    const id = await enqueueChat(stack, accountId, model);
    await waitForJob(stack, accountId, id, hasOutput);
    generated.push(id);
  }
  const { id: embedding } = await createJob(stack, account, '/v1/embeddings', {
    model: 'vectors',
    input: 'cat',
  });
  await waitFor('the call for vectors', () => embeddingCalls.length > 0);
  const unstarted = await enqueueChat(stack, accountId, 'chat');
  await waitForJob(stack, accountId, unstarted, ({ workerId }) => workerId !== null);

  // The worker does not know of the cancellation yet when it returns unstarted jobs to the queue.
  await cancelJob(stack.redis, accountId, unstarted);
  const stopped = worker.stop();
  t.like(await waitForEnd(stack, accountId, unstarted), { status: 'cancelled', receipt: { costNano: 0n } });
  for (const id of [...generated, embedding]) {
    const cancellation = await cancelJob(stack.redis, accountId, id);
    if (cancellation.outcome !== 'requested') throw new Error('no worker has the job');
    // The worker is notified only of this cancellation. If it did not stop, it would read the whole vendor response.
    if (id === generated[1])
      await sendControl(stack.redis, cancellation.workerId, { action: 'cancel-job', jobId: id });
  }
  await worker.handBack!();

  let spent = 0n;
  for (const id of [...generated, embedding, unstarted]) {
    const { status, receipt, error } = await readJob(stack, accountId, id);
    t.is(status, 'cancelled');
    t.regex(error!.message, /You are charged only for work that was already done/);
    if (generated.includes(id)) t.true(receipt!.costNano > 0n);
    spent += receipt!.costNano;
  }
  t.is(before.balance - (await readBalance(stack.redis, accountId)).balance, spent);
  await expectNothingHeld(t, stack, accountId);
  // Ends the vendor calls still held. A worker in its own process would exit without waiting for them.
  for (const end of embeddingCalls) end();
  await stopped;
});

test('a job stays queued until a worker knows its model, and ends at its deadline if none does', async (t) => {
  const catalogOf = (...ids: string[]): string => `
upstreams: { builtin: { kind: builtin } }
models:
${ids.map((id) => `  - { id: ${id}, aliases: [alias-of-${id}], type: chat, context: 8192, ${pricing}, routes: [{ upstream: builtin, model: demo-echo }] }`).join('\n')}
`;
  const stack = await useStack(t, { catalog: catalogOf('known') });
  const { id: accountId } = await stack.createAccount();
  const enqueue = (model: string): Promise<string> => enqueueChat(stack, accountId, model);
  const [later, never] = [await enqueue('later'), await enqueue('never')];
  for (const model of ['known', 'alias-of-known'])
    t.is((await waitForEnd(stack, accountId, await enqueue(model))).status, 'succeeded');
  for (const id of [later, never])
    t.like(await readJob(stack, accountId, id), { status: 'queued', attempts: 0 });

  await writeFile(stack.config.catalogPath, catalogOf('known', 'later'));
  t.like(await waitForEnd(stack, accountId, later), { status: 'succeeded', attempts: 1 });
  await stack.redis.zadd(redisKeys.jobDeadlines(shardOf(accountId)), 1, `${accountId} ${never}`);
  const ended = await waitForEnd(stack, accountId, never);
  t.like(ended, { status: 'failed', attempts: 0, error: { code: 'deadline_exceeded' } });
  await expectNothingHeld(t, stack, accountId);
});
