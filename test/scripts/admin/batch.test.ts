import { randomUUID } from 'node:crypto';
import test from 'ava';
import type { Batch } from '../../../shared/contract/batches.ts';
import { redisKeys, shardOf } from '../../../shared/platform/redis/redis-keys.ts';
import type { VendorSimulator } from '../../../scripts/vendor-simulator/simulator.ts';
import { readAdmin, runAdmin } from '../../support/admin.ts';
import { callApi } from '../../support/call-api.ts';
import { createJob, waitForJob } from '../../support/jobs.ts';
import type { TestAccount, TestStack } from '../../support/stack.ts';
import { useVendorStack } from '../../support/vendor-stack.ts';
import { waitFor } from '../../support/wait-for.ts';

/** How operators look at batches and jobs, cancel them, and retry batches. */

const models = ['quick', 'listed', 'shown', 'stopped', 'job', 'dear', 'kept'] as const;
const catalogOf = (vendorUrl: string): string => `
upstreams:
  vendor: { kind: openai, baseUrl: "${vendorUrl}/v1", apiKeys: [sk-vendor-key-0123456789] }
models:
${models.map((model) => `  - { id: ${model}, type: chat, context: 8192, pricing: { prompt: 7, completion: 13 }, routes: [{ upstream: vendor, model: gpt-${model} }] }`).join('\n')}
`;

let stack: TestStack;
let vendor: VendorSimulator;
useVendorStack(test, catalogOf, (started) => {
  ({ stack, vendor } = started);
});

const messages = [{ role: 'user', content: 'hello' }];

/** Creates a batch of chats. @returns its id */
async function createBatch({ apiKey }: TestAccount, model: string, lines: number): Promise<string> {
  const requests = Array.from({ length: lines }, (_, i) => ({
    custom_id: `line-${i}`,
    body: { model, messages, max_tokens: 10 },
  }));
  const body = { endpoint: '/v1/chat/completions', completion_window: '24h', requests };
  const created = await callApi<{ id: string }>(stack.url, apiKey, 'POST', '/batches', body);
  if (created.status !== 200) throw new Error(`no batch: ${JSON.stringify(created)}`);
  return created.body.id;
}

interface ShownBatch {
  readonly id: string;
  readonly account: string;
  readonly status: string;
  readonly cost: number;
  readonly reserved: number;
  readonly slices: readonly { readonly worker: string | null; readonly bytes: number }[];
}

const show = (id: string) => readAdmin<ShownBatch>(stack.env, 'batch', 'show', id);
const waitForStatus = (id: string, status: string): Promise<ShownBatch> =>
  waitFor(`the batch to be ${status}`, async () => {
    const batch = await show(id);
    return batch.status === status ? batch : null;
  });
const list = (...args: string[]) => readAdmin<ShownBatch[]>(stack.env, 'batch', 'list', ...args);
const idsOf = (batches: readonly ShownBatch[]): string[] => batches.map(({ id }) => id);

test('unfinished batches of all accounts are listed, and ended ones by their status', async (t) => {
  const held = vendor.hold('gpt-listed');
  t.teardown(() => held.end());
  const [one, other] = [await stack.createAccount(), await stack.createAccount()];
  const ended = await createBatch(one, 'quick', 3);
  const { cost } = await waitForStatus(ended, 'completed');
  const running = await createBatch(one, 'listed', 3);
  const ofOther = await createBatch(other, 'listed', 2);
  await waitFor('all lines to run', () => held.waiting === 5);

  const rows = await list();
  t.deepEqual(
    idsOf(rows).filter((id) => [ended, running, ofOther].includes(id)),
    [ofOther, running],
  );
  t.like(
    rows.find(({ id }) => id === running),
    {
      account: one.id,
      status: 'in_progress',
      endpoint: '/v1/chat/completions',
      model: 'listed',
      lines_total: 3,
      lines_done: 0,
      lines_failed: 0,
      cost: 0,
      ended_at: null,
    },
  );
  t.deepEqual(idsOf(await list('--account', other.apiKey)), [ofOther]);
  t.deepEqual(idsOf(await list('--account', one.id, '--status', 'completed')), [ended]);
  const completed = (await list('--status', 'completed')).find(({ id }) => id === ended);
  t.like(completed, { account: one.id, lines_total: 3, lines_done: 3, cost });
  t.false(idsOf(await list('--status', 'completed')).includes(running));
  const { stdout } = await runAdmin(stack.env, 'batch', 'list', '--account', one.id);
  t.regex(stdout, /^batch_[0-9a-f]{32} +in_progress +3 +0 /m);
});

test('a batch is shown with its record and with the lines that workers have', async (t) => {
  const held = vendor.hold('gpt-shown');
  t.teardown(() => held.end());
  const account = await stack.createAccount();
  const id = await createBatch(account, 'shown', 2);
  await waitFor('the lines to run', async () => (await show(id)).reserved > 0);
  const shown = await show(id);
  t.like(shown, { id, account: account.id, queue: 'batch-chat', turns_of_model: 'shown', lines_total: 2 });
  t.is(shown.slices.length, 1);
  t.like(shown.slices[0], { slice: 1, from_byte: 0, attempt: 1, deaths: 0, settlements: 0 });
  t.is(typeof shown.slices[0]!.worker, 'string');
  const { stdout } = await runAdmin(stack.env, 'batch', 'show', id);
  t.regex(stdout, /^slices:\n {2}slice /m);
  held.end();
  const ended = await waitForStatus(id, 'completed');
  t.like(ended, { lines_succeeded: 2, reserved: 0, slices: [] });
  t.like(ended, { models: [{ model: 'shown', succeeded: 2, failed: 0, cost: ended.cost }] });
});

test('a cancelled batch runs no more lines, and those that run are finished and charged', async (t) => {
  const held = vendor.hold('gpt-stopped');
  t.teardown(() => held.end());
  const account = await stack.createAccount();
  const id = await createBatch(account, 'stopped', 70);
  await waitFor('some lines to run', () => held.waiting > 0);
  const cancelled = await readAdmin<ShownBatch>(stack.env, 'batch', 'cancel', id);
  t.like(cancelled, { status: 'cancelling', stopped_because: 'batch_cancelled' });
  held.end();
  const ended = await waitForStatus(id, 'cancelled');
  t.true(ended.cost > 0);
  t.like(await readAdmin(stack.env, 'batch', 'cancel', id), { status: 'cancelled', cost: ended.cost });
});

/** Creates a batch of which some lines fail, and waits for its end. @returns its id */
async function createFailing(account: TestAccount, fields: object = {}): Promise<string> {
  const bodyOf = (model: string) => ({ model, messages, max_tokens: 10 });
  const requests = ['quick', 'no-such-model', 'quick', 'neither-this'].map((model, i) => ({
    custom_id: `line-${i}`,
    body: bodyOf(model),
  }));
  const body = { endpoint: '/v1/chat/completions', completion_window: '24h', requests, ...fields };
  const created = await callApi<{ id: string }>(stack.url, account.apiKey, 'POST', '/batches', body);
  await waitForStatus(created.body.id, 'completed');
  return created.body.id;
}

const getBatch = async ({ apiKey }: TestAccount, id: string): Promise<Batch> =>
  (await callApi<Batch>(stack.url, apiKey, 'GET', `/batches/${id}`)).body;
const readFile = async ({ apiKey }: TestAccount, id: string): Promise<string> => {
  const headers = { authorization: `Bearer ${apiKey}` };
  return await (await fetch(`${stack.url}/v1/files/${id}/content`, { headers })).text();
};
const deleteFile = async ({ apiKey }: TestAccount, id: string): Promise<void> => {
  const headers = { authorization: `Bearer ${apiKey}` };
  await fetch(`${stack.url}/v1/files/${id}`, { method: 'DELETE', headers });
};
const listFiles = async ({ apiKey }: TestAccount): Promise<string[]> =>
  (await callApi<{ data: { id: string }[] }>(stack.url, apiKey, 'GET', '/files?purpose=batch')).body.data.map(
    ({ id }) => id,
  );

test('an operator retries the failed lines of a batch as its owner could, without a request per minute', async (t) => {
  const account = await stack.createAccount({ rpm: 1 });
  const fields = { metadata: { dataset: 'articles' }, max_cost: 5 };
  const id = await createFailing(account, fields);
  const before = await getBatch(account, id);
  // The one request of this minute is used.
  const retry = await readAdmin<ShownBatch>(stack.env, 'batch', 'retry', id);
  t.not(retry.id, id);
  t.like(retry, { account: account.id, lines_total: 2, turns_of_model: 'quick', ...fields });
  const ended = await waitForStatus(retry.id, 'completed');
  t.like(ended, { lines_succeeded: 0, lines_failed: 2, cost: 0, reserved: 0 });
  const batch = await getBatch(account, retry.id);
  t.like(batch, { endpoint: '/v1/chat/completions', ...fields });
  const ids = (await readFile(account, batch.error_file_id!))
    .trimEnd()
    .split('\n')
    .map((line) => (JSON.parse(line) as { custom_id: string }).custom_id);
  t.deepEqual(ids.toSorted(), ['line-1', 'line-3']);
  t.deepEqual(await getBatch(account, id), before);
  t.is((await stack.readAccount(account.id)).reservedNano, 0n);
  const { stdout } = await runAdmin(stack.env, 'batch', 'retry', retry.id);
  t.regex(stdout, /^id +batch_[0-9a-f]{32}$/m);
});

test('an operator retries a batch of an account that has used its tokens of the minute', async (t) => {
  const account = await stack.createAccount();
  const id = await createFailing(account);
  await readAdmin(stack.env, 'account', 'update', account.id, '--tpm', '1');
  const chat = { model: 'quick', messages, max_tokens: 10 };
  t.is((await stack.post('/v1/chat/completions', account.apiKey, chat)).status, 200);
  t.is((await stack.post('/v1/chat/completions', account.apiKey, chat)).status, 429);
  t.like(await readAdmin<ShownBatch>(stack.env, 'batch', 'retry', id), { lines_total: 2 });
});

test('a retry that the balance cannot pay, that has nothing to retry, or whose files are gone says so', async (t) => {
  const account = await stack.createAccount();
  const refuse = async (id: string, expected: RegExp): Promise<void> => {
    const files = await listFiles(account);
    const { exitCode, stdout, stderr } = await runAdmin(stack.env, 'batch', 'retry', id);
    t.is(exitCode, 1);
    t.is(stdout, '');
    t.regex(stderr, expected);
    t.deepEqual(await listFiles(account), files);
    t.is((await stack.readAccount(account.id)).reservedNano, 0n);
  };
  const held = vendor.hold('gpt-dear');
  t.teardown(() => held.end());
  const unpaid = await createBatch(account, 'dear', 70);
  await waitFor('some lines to run', () => held.waiting > 0);
  const { stderr } = await runAdmin(stack.env, 'batch', 'retry', unpaid);
  t.regex(stderr, /^The batch has not ended/);
  await readAdmin(stack.env, 'batch', 'cancel', unpaid);
  held.end();
  await waitForStatus(unpaid, 'cancelled');

  const successful = await createBatch(account, 'quick', 1);
  await waitForStatus(successful, 'completed');
  await refuse(successful, /^The batch has no failed lines/);

  const gone = await createFailing(account);
  const { input_file_id: input, error_file_id: errors } = await getBatch(account, gone);
  await deleteFile(account, input);
  await refuse(gone, new RegExp(`^The input file of the batch, ${input}, was deleted or has expired`));
  await deleteFile(account, errors!);
  await refuse(gone, new RegExp(`^The error file of the batch, ${errors}, was deleted or has expired`));

  await stack.redis.hset(redisKeys.account(account.id), 'bal', '5');
  await refuse(
    unpaid,
    /^The lines may cost \d+\.\d+ RUB, and 0\.000000005 RUB of the account's balance is available\.$/m,
  );
  await readAdmin(stack.env, 'account', 'ban', account.id, '--reason', 'unpaid bills');
  await refuse(unpaid, /^The account is banned/);
});

test('an account that has as many batches or files as it may have gets no retry', async (t) => {
  const account = await stack.createAccount();
  const id = await createFailing(account);
  const files = await listFiles(account);
  const held = vendor.hold('gpt-kept');
  t.teardown(() => held.end());
  const running = await createBatch(account, 'kept', 1);
  await waitFor('the line to run', () => held.waiting === 1);
  const retryWith = (limit: Record<string, string>) =>
    runAdmin({ ...stack.env, ...limit }, 'batch', 'retry', id);
  const beyondBatches = await retryWith({ MAX_UNFINISHED_BATCHES: '1' });
  t.is(beyondBatches.exitCode, 1);
  t.regex(beyondBatches.stderr, /^This account has 1 unfinished batches, and may have 1\./);
  const beyondFiles = await retryWith({ MAX_FILES_PER_ACCOUNT: '1' });
  t.is(beyondFiles.exitCode, 1);
  t.regex(beyondFiles.stderr, /^An account can have 1 files, and this one has \d+ files/);
  held.end();
  await waitForStatus(running, 'completed');
  t.is((await listFiles(account)).length, files.length + 1);
  t.is((await stack.readAccount(account.id)).reservedNano, 0n);
});

test('jobs are shown, and cancelled while they wait or run', async (t) => {
  const held = vendor.hold('gpt-job');
  t.teardown(() => held.end());
  const account = await stack.createAccount();
  const { id } = await createJob(stack, account, '/v1/chat/completions', { model: 'job', messages });
  await waitFor('the job to run', () => held.waiting > 0);
  t.like(await readAdmin(stack.env, 'job', 'show', id), {
    id,
    account: account.id,
    status: 'active',
    operation: 'chat.completions',
    model: 'job',
    attempts: 1,
    cancel_requested: false,
    cost: null,
    ended_at: null,
  });
  t.like(await readAdmin(stack.env, 'job', 'cancel', id), { id, cancel_requested: true });
  t.is((await waitForJob(stack, account, id)).status, 'cancelled');
  t.like(await readAdmin(stack.env, 'job', 'show', id), { status: 'cancelled', error_code: 'job_cancelled' });
  // As of a job that was created before accounts of jobs were noted.
  await stack.redis.hdel(redisKeys.jobOwners(shardOf(account.id)), id);
  t.like(await readAdmin(stack.env, 'job', 'show', id), { id, status: 'cancelled' });
});

test('a batch or job that does not exist is an error, and so is a status that does not exist', async (t) => {
  const cases: [args: string[], exitCode: number, expected: RegExp][] = [
    [['batch', 'show', `batch_${'0'.repeat(32)}`], 1, /^No batch "batch_0/],
    [['batch', 'cancel', 'nothing'], 1, /^No batch "nothing"/],
    [['batch', 'retry', `batch_${'0'.repeat(32)}`], 1, /^No batch "batch_0/],
    [['job', 'show', randomUUID()], 1, /^No job /],
    [['job', 'cancel', 'nothing'], 1, /^No job "nothing"/],
    [['batch', 'list', '--status', 'done'], 2, /^--status must be one of validating, /],
    [['batch', 'list', '--account', 'nobody'], 1, /^No account "nobody"/],
  ];
  for (const [args, exitCode, expected] of cases) {
    const result = await runAdmin(stack.env, ...args);
    t.is(result.exitCode, exitCode, args.join(' '));
    t.is(result.stdout, '');
    t.regex(result.stderr, expected);
  }
});
