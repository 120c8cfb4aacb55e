import { randomUUID } from 'node:crypto';
import test from 'ava';
import type { VendorSimulator } from '../../scripts/vendor-simulator/simulator.ts';
import { callJobsApi, createJob, readJob, waitForJob } from '../support/jobs.ts';
import { findReservations, toNano } from '../support/observe.ts';
import type { TestAccount, TestStack } from '../support/stack.ts';
import { useVendorStack } from '../support/vendor-stack.ts';

/** `Cancel-After`: a time for the whole work of a job, after which it is cancelled as its caller would cancel it. */

const catalogOf = (vendorUrl: string): string => `
upstreams:
  vendor: { kind: openai, baseUrl: "${vendorUrl}/v1", apiKeys: [sk-vendor-key-0123456789] }
  narrow: { kind: openai, baseUrl: "${vendorUrl}/v1", apiKeys: [sk-narrow-key-0123456789], maxConcurrency: 1 }
  single: { kind: openai, baseUrl: "${vendorUrl}/v1", apiKeys: [sk-single-key-0123456789], maxConcurrency: 1, drops: [n] }
models:
  - { id: chat, type: chat, context: 8192, pricing: { prompt: 7, completion: 13 }, routes: [{ upstream: vendor, model: gpt }] }
  - { id: hung-chat, type: chat, context: 8192, pricing: { prompt: 7, completion: 13 }, routes: [{ upstream: vendor, model: gpt+slow-60000 }] }
  - { id: busy-chat, type: chat, context: 8192, pricing: { prompt: 7, completion: 13 }, routes: [{ upstream: narrow, model: gpt+slow-60000 }] }
  - { id: busy-vectors, type: embedding, context: 8192, dimensions: { default: 1536 }, pricing: { in_cost_per_million: 7000 }, routes: [{ upstream: narrow, model: emb }] }
  - { id: hung-pictures, type: image, context: 8192, pricing: { type: image, cost_per_image: 1.5 }, routes: [{ upstream: single, model: img+slow-60000 }] }
`;

let vendor: VendorSimulator;
let stack: TestStack;

useVendorStack(test, catalogOf, (started) => {
  ({ stack, vendor } = started);
});

const chats = '/v1/chat/completions';
const images = '/v1/images/generations';

const chatOf = (model: string, content = 'Say hello.') => ({
  model,
  messages: [{ role: 'user', content }],
  max_tokens: 20,
});

const createWord = (): string => `w${randomUUID().replaceAll('-', '')}`;
const countCalls = (word: string): number =>
  vendor.requests.entries.filter((entry) => JSON.stringify(entry.body).includes(word)).length;

async function readSpent({ id }: TestAccount): Promise<bigint> {
  return toNano(100) - (await stack.readAccount(id)).balanceNano;
}

const lengthOf = (from: string, to: string | null): number => Date.parse(to!) - Date.parse(from);

test('a job shows when it is cancelled, and one without Cancel-After shows null', async (t) => {
  const account = await stack.createAccount();
  const {
    id,
    created_at: createdAt,
    cancel_at: cancelAt,
  } = await createJob(stack, account, chats, chatOf('chat'), {
    'cancel-after': '15m',
  });
  t.is(lengthOf(createdAt, cancelAt), 15 * 60_000);
  t.is((await createJob(stack, account, chats, chatOf('chat'))).cancel_at, null);
  const ended = await waitForJob(stack, account, id);
  t.like(ended, { status: 'succeeded', cancel_at: cancelAt });
});

test('a running chat is cancelled after its time, and charged as one that its caller cancels', async (t) => {
  const [timed, deleted] = [await stack.createAccount(), await stack.createAccount()];
  const body = { ...chatOf('hung-chat'), max_tokens: 5_000 };
  const one = await createJob(stack, timed, chats, body, { 'cancel-after': '3s' });
  const other = await createJob(stack, deleted, chats, body);
  await waitForJob(stack, deleted, other.id, ({ status }) => status === 'active');
  await callJobsApi(stack, deleted, `/${other.id}`, { method: 'DELETE' });
  const ended = await waitForJob(stack, timed, one.id);
  t.like(ended, { status: 'cancelled', error: { code: 'job_cancelled' }, response: null });
  t.regex(ended.error!.message, /Cancel-After.*charged/);
  t.true(lengthOf(ended.created_at, ended.ended_at) >= 3_000);
  t.truthy(ended.started_at);
  t.true(ended.cost_request! > 0);
  t.is(ended.cost_request, (await waitForJob(stack, deleted, other.id)).cost_request);
  t.is(toNano(ended.cost_request!), await readSpent(timed));
  t.deepEqual(await findReservations(stack, timed.id), []);
});

test('running images are cancelled after their time, and only those requested from the vendor are charged', async (t) => {
  const account = await stack.createAccount();
  const word = createWord();
  const headers = { 'cancel-after': '3' };
  const { id } = await createJob(
    stack,
    account,
    images,
    { model: 'hung-pictures', prompt: word, n: 3 },
    headers,
  );
  t.like(await waitForJob(stack, account, id), { status: 'cancelled', cost_request: 1.5 });
  t.is(countCalls(word), 1);
  t.is(await readSpent(account), toNano(1.5));
});

test('jobs that have not started after their time are cancelled free of charge, and never reach a vendor', async (t) => {
  const blocker = await stack.createAccount();
  const blocking = await createJob(stack, blocker, chats, chatOf('busy-chat'));
  await waitForJob(stack, blocker, blocking.id, ({ status }) => status === 'active');
  const account = await stack.createAccount();
  const words = Array.from({ length: 6 }, createWord);
  const headers = { 'cancel-after': '2s' };
  // A worker has taken two of the chats, which wait for a call slot; the others wait for a worker.
  const jobs = await Promise.all([
    ...words
      .slice(1)
      .map(async (word) => await createJob(stack, account, chats, chatOf('busy-chat', word), headers)),
    createJob(stack, account, '/v1/embeddings', { model: 'busy-vectors', input: words[0] }, headers),
  ]);
  for (const { id } of jobs) {
    const ended = await waitForJob(stack, account, id);
    t.like(ended, {
      status: 'cancelled',
      started_at: null,
      cost_request: 0,
      error: { code: 'job_cancelled' },
    });
    t.true(lengthOf(ended.created_at, ended.ended_at) >= 2_000);
  }
  for (const word of words) t.is(countCalls(word), 0);
  t.is(await readSpent(account), 0n);
  t.is((await stack.readAccount(account.id)).reservedNano, 0n);
  await callJobsApi(stack, blocker, `/${blocking.id}`, { method: 'DELETE' });
});

test('a caller that waits for a job with a time gets the cancelled job', async (t) => {
  const account = await stack.createAccount();
  const response = await stack.post(chats, account.apiKey, chatOf('hung-chat'), {
    prefer: 'respond-async, wait=60',
    'cancel-after': '2s',
  });
  t.is(response.status, 202);
  t.like(await response.json(), { status: 'cancelled' });
});

test('a job that ends about when its time is over has exactly one outcome, and costs what it says', async (t) => {
  const account = await stack.createAccount();
  // The vendor takes about as long as the jobs may, so some of them succeed.
  const created = await Promise.all(
    Array.from({ length: 60 }, (_, i) =>
      createJob(stack, account, chats, chatOf(`chat`, `take ${i}`), { 'cancel-after': '1s' }),
    ),
  );
  let cost = 0n;
  const outcomes = new Set<string>();
  for (const { id } of created) {
    const ended = await waitForJob(stack, account, id);
    outcomes.add(ended.status);
    cost += toNano(ended.cost_request!);
    t.is(ended.response === null, ended.status === 'cancelled');
  }
  t.log([...outcomes].join(', '));
  t.is(await readSpent(account), cost);
  t.is((await stack.readAccount(account.id)).reservedNano, 0n);
  for (const { id, ...before } of await Promise.all(created.map(({ id }) => readJob(stack, account, id)))) {
    t.deepEqual(await readJob(stack, account, id), { id, ...before }, 'an ended job does not change');
  }
});
