import anyTest from 'ava';
import type { VendorSimulator } from '../../scripts/vendor-simulator/simulator.ts';
import { expireJobLeases, describeJobHolds } from '../support/audit-jobs.ts';
import { createJob, readJob, waitForJob } from '../support/jobs.ts';
import { toNano } from '../support/observe.ts';
import { allQueues, type TestStack } from '../support/stack.ts';
import { useVendorStack } from '../support/vendor-stack.ts';
import { waitFor } from '../support/wait-for.ts';
import { startRole } from '../support/worker-process.ts';

/**
 * Jobs with `Cancel-After` while their workers die, freeze or stop. The stack's own worker runs no jobs and only does
 * maintenance.
 */

const test = anyTest.serial;

const catalogOf = (vendorUrl: string): string => `
upstreams:
  vendor: { kind: openai, baseUrl: "${vendorUrl}/v1", apiKeys: [vendor-key], maxConcurrency: 512 }
models:
  - { id: chat, type: chat, context: 8192, pricing: { prompt: 50, completion: 150 }, routes: [{ upstream: vendor, model: gpt }] }
`;

let vendor: VendorSimulator;
let stack: TestStack;

useVendorStack(
  anyTest,
  catalogOf,
  (started) => {
    ({ stack, vendor } = started);
  },
  { workers: [{ ...allQueues, queues: [] }] },
);

const chats = '/v1/chat/completions';
const chat = { model: 'chat', messages: [{ role: 'user', content: 'hello' }], max_tokens: 50 };

const readSpent = async (id: string): Promise<bigint> =>
  toNano(100) - (await stack.readAccount(id)).balanceNano;

test('if the worker of a job is killed before the time of the job is over, the job is cancelled on time and free of charge', async (t) => {
  const account = await stack.createAccount();
  const worker = await startRole(t, 'worker', stack.env);
  const held = vendor.hold('gpt');
  t.teardown(() => held.end());
  const { id, cancel_at: cancelAt } = await createJob(stack, account, chats, chat, { 'cancel-after': '15s' });
  await waitFor('the call', () => held.waiting === 1);
  worker.child.kill('SIGKILL');
  await expireJobLeases(stack.redis);
  const ended = await waitForJob(stack, account, id);
  t.like(ended, { status: 'cancelled', cost_request: 0, error: { code: 'job_cancelled' } });
  t.true(Date.parse(ended.ended_at!) >= Date.parse(cancelAt!));
  t.true(Date.parse(ended.ended_at!) < Date.parse(cancelAt!) + 15_000);
  t.is(await readSpent(account.id), 0n);
  t.is((await stack.readAccount(account.id)).reservedNano, 0n);
  t.deepEqual(await describeJobHolds(stack.redis, account.id), []);
});

test('a worker that freezes over the time of its job and resumes ends the job once, and charges it once', async (t) => {
  const account = await stack.createAccount();
  const worker = await startRole(t, 'worker', stack.env);
  const held = vendor.hold('gpt');
  t.teardown(() => held.end());
  const { id } = await createJob(stack, account, chats, chat, { 'cancel-after': '4s' });
  await waitFor('the call', () => held.waiting === 1);
  worker.child.kill('SIGSTOP');
  // The vendor's response arrives while the worker is frozen: success and the time of the job meet.
  held.release(1);
  await waitFor('the request to cancel', async () => (await readJob(stack, account, id)).cancel_requested);
  worker.child.kill('SIGCONT');
  const ended = await waitForJob(stack, account, id);
  t.true(['cancelled', 'succeeded'].includes(ended.status), ended.status);
  t.is(await readSpent(account.id), toNano(ended.cost_request!));
  t.is((await stack.readAccount(account.id)).reservedNano, 0n);
  t.deepEqual(await describeJobHolds(stack.redis, account.id), []);
  t.deepEqual(await readJob(stack, account, id), ended);
  await worker.terminate();
});

test('a worker that is stopped when the time of its job is over settles the job before it exits', async (t) => {
  const account = await stack.createAccount();
  const worker = await startRole(t, 'worker', stack.env);
  const held = vendor.hold('gpt');
  t.teardown(() => held.end());
  const { id } = await createJob(stack, account, chats, chat, { 'cancel-after': '3s' });
  await waitFor('the call', () => held.waiting === 1);
  const exited = worker.terminate();
  const ended = await waitForJob(stack, account, id);
  t.like(ended, { status: 'cancelled', attempts: 1 });
  t.true(ended.cost_request! > 0, 'the vendor was called, so the prompt is charged');
  t.is(await readSpent(account.id), toNano(ended.cost_request!));
  t.is(await exited, 0);
});
