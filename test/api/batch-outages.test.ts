import anyTest, { type ExecutionContext } from 'ava';
import type { VendorSimulator } from '../../scripts/vendor-simulator/simulator.ts';
import { parseRub } from '../../shared/encoding/money.ts';
import { redisKeys, shardOf } from '../../shared/platform/redis/redis-keys.ts';
import { ObjectStore } from '../../shared/platform/storage/object-store.ts';
import { checkBatches, checkFilesHeld } from '../crash/batch-audit.ts';
import { BatchCaller, type BatchBody, type BatchInput, type BatchLine } from '../crash/batch-load.ts';
import { describeJobHolds } from '../support/audit-jobs.ts';
import { captureLog } from '../support/captured-log.ts';
import { toNano } from '../support/observe.ts';
import type { TestAccount, TestStack } from '../support/stack.ts';
import { useVendorStack } from '../support/vendor-stack.ts';
import { waitFor } from '../support/wait-for.ts';

/** Batches while the object store is away or has lost their input, and many batches at once. */

// The tests interrupt the store, or keep the api busy.
const test = anyTest.serial;

const catalogOf = (vendorUrl: string): string => `
upstreams:
  vendor: { kind: openai, baseUrl: "${vendorUrl}/v1", apiKeys: [sk-vendor-key-0123456789], maxConcurrency: 512 }
models:
  - { id: chat, type: chat, context: 8192, pricing: { prompt: 7001, completion: 13003 }, routes: [{ upstream: vendor, model: gpt }] }
  - { id: held-chat, type: chat, context: 8192, pricing: { prompt: 7001, completion: 13003 }, routes: [{ upstream: vendor, model: gpt-held }] }
  - { id: image, type: image, context: 8192, size: [256x256], pricing: { type: image, cost_per_image: 0.1 }, routes: [{ upstream: vendor, model: img }] }
`;

const balance = '1000';
const log = captureLog('error');

let stack: TestStack;
let vendor: VendorSimulator;

useVendorStack(
  anyTest,
  catalogOf,
  (started) => {
    ({ stack, vendor } = started);
  },
  // Nothing takes batches of images.
  { holdsS3: true, log: log.log, workers: [{ queues: ['chat', 'embedding'], concurrency: 256 }] },
);

const chatLine = (i: number, model: string): BatchLine => ({
  custom_id: `line-${i}`,
  body: { model, messages: [{ role: 'user', content: `one two ${i}` }], max_tokens: 20 },
});

const chatLines = (count: number, model = 'chat'): BatchLine[] =>
  Array.from({ length: count }, (_, i) => chatLine(i, model));

async function describeInput(lines: readonly BatchLine[]): Promise<BatchInput> {
  const account = await stack.createAccount({ balance });
  return { name: 'batch', account, endpoint: '/v1/chat/completions', isInline: false, lines };
}

const caller = (): BatchCaller => new BatchCaller([stack.url]);

type ShownBatch = BatchBody & {
  readonly failed_at: number | null;
  readonly errors: { readonly data: readonly { readonly code: string; readonly message: string }[] } | null;
};

async function readBatch(account: TestAccount): Promise<ShownBatch> {
  const [batch] = await caller().list<ShownBatch>(account, '/v1/batches');
  return batch!;
}

const waitForEnd = (account: TestAccount, status = 'completed'): Promise<ShownBatch> =>
  waitFor('the batch to end', async () => {
    const batch = await readBatch(account);
    return batch.status === status && batch;
  });

/** Asserts that the account has paid this much, and that nothing is reserved any more. */
async function checkMoney(t: ExecutionContext, { id }: TestAccount, costNano: bigint): Promise<void> {
  const { balanceNano, reservedNano } = await stack.readAccount(id);
  t.is(parseRub(balance)! - balanceNano, costNano);
  t.is(reservedNano, 0n);
  t.deepEqual(await describeJobHolds(stack.redis, id), []);
}

async function checkPaidOnce(t: ExecutionContext, input: BatchInput): Promise<void> {
  const report = await checkBatches(caller(), input.account, new Map([[input.name, input]]));
  t.deepEqual(report.problems, []);
  t.true(report.costNano > 0n);
  await checkMoney(t, input.account, report.costNano);
}

test('while results cannot be stored, a batch waits; then it goes on, and its lines are called and charged once', async (t) => {
  const held = vendor.hold('gpt-held');
  t.teardown(() => held.end());
  const proxy = stack.s3Proxy!;
  t.teardown(() => proxy.release());
  const input = await describeInput([...chatLines(2, 'held-chat'), chatLine(2, 'no-such-model')]);
  const { account } = input;
  const calls = vendor.requests.counters.total;
  await caller().create(input);
  await waitFor('the calls', () => held.waiting === 2);
  proxy.cut();
  const { refused } = proxy;
  held.end();
  // More connections than two attempts to store two objects make.
  await waitFor('the results to be stored in vain', () => proxy.refused > refused + 12);
  t.like(await readBatch(account), { status: 'in_progress', request_counts: { completed: 0 } });
  proxy.release();
  const ended = await waitForEnd(account);
  t.deepEqual(ended.request_counts, { total: 3, completed: 2, failed: 1 });
  t.is(vendor.requests.counters.total, calls + 2);
  const output = await caller().readResults(account, ended.output_file_id);
  t.deepEqual(output.map((line) => line.custom_id).toSorted(), ['line-0', 'line-1']);
  const costNano = output.reduce((sum, { response }) => sum + toNano(response!.body.usage!.cost_request), 0n);
  t.is(toNano(ended.cost), costNano);
  await checkMoney(t, account, costNano);
});

test('while its input cannot be read, a batch waits; then it goes on, and its lines are called and charged once', async (t) => {
  const proxy = stack.s3Proxy!;
  t.teardown(() => proxy.release());
  const input = await describeInput(chatLines(5));
  const { account } = input;
  const calls = vendor.requests.counters.total;
  const input_file_id = await caller().upload(input);
  proxy.cut();
  const created = await stack.post('/v1/batches', account.apiKey, {
    input_file_id,
    endpoint: input.endpoint,
    completion_window: '24h',
    metadata: { name: input.name },
  });
  const { id } = (await created.json()) as BatchBody;
  const pauses = `${redisKeys.jobsOf(shardOf(account.id))}batch-pauses`;
  const member = `${account.id} ${id}`;
  await waitFor('the batch to wait', async () => (await stack.redis.zscore(pauses, member)) !== null);
  t.is((await readBatch(account)).status, 'in_progress');
  proxy.release();
  await stack.redis.zadd(pauses, 'XX', 1, member);
  await waitForEnd(account);
  t.is(vendor.requests.counters.total, calls + 5);
  await checkPaidOnce(t, input);
});

test('a batch whose input is lost fails: results so far are kept, the other lines count as failed, and it says why', async (t) => {
  const held = vendor.hold('gpt-held');
  t.teardown(() => held.end());
  // More slices than a worker has at a time.
  const input = await describeInput(chatLines(400, 'held-chat'));
  const { account } = input;
  const { id } = await caller().create(input);
  const slices = redisKeys.batchSlices(account.id, id);
  await waitFor('four slices to run', async () => {
    const texts = await stack.redis.hvals(slices);
    return texts.length === 4 && texts.every((text) => text.split(' ')[6] !== '0');
  });
  const objects = new ObjectStore(stack.config.s3);
  t.teardown(() => objects.close());
  const key = (await stack.redis.hget(redisKeys.batch(account.id, id), 'key'))!;
  await objects.delete(key);
  held.end();
  const ended = await waitForEnd(account, 'failed');
  const output = await caller().readResults(account, ended.output_file_id);
  t.true(output.length >= 200 && output.length < 400);
  t.deepEqual(ended.request_counts, {
    total: 400,
    completed: output.length,
    failed: 400 - output.length,
  });
  t.truthy(ended.failed_at);
  t.like(ended.errors!.data, [{ code: 'input_lost', line: null }]);
  t.is(ended.errors!.data.length, 1);
  await log.waitForLine(({ msg, batchId }) => msg === 'the input of a batch is lost' && batchId === id);
  await checkMoney(t, account, toNano(ended.cost));
  t.is(await stack.redis.exists(slices), 0);
});

test('of a thousand batches that are created at once, as many exist as are allowed, and the others leave nothing', async (t) => {
  const account = await stack.createAccount({ balance });
  const image = { custom_id: 'image', body: { model: 'image', prompt: 'a red fox' } };
  const endpoint = '/v1/images/generations';
  const input_file_id = await caller().upload({ account, endpoint, lines: [image] });
  const statuses: number[] = [];
  const created: string[] = [];
  let inline = 0;
  const createTen = async (isInline: boolean): Promise<void> => {
    for (let i = 0; i < 10; i++) {
      const input = isInline ? { requests: [image] } : { input_file_id };
      const body = { ...input, endpoint, completion_window: '24h' };
      const response = await stack.post('/v1/batches', account.apiKey, body);
      const reply = (await response.json()) as {
        readonly id: string;
        readonly error?: { readonly code: string; readonly message: string };
      };
      statuses.push(response.status);
      if (response.status === 200) {
        created.push(reply.id);
        if (isInline) inline += 1;
      } else {
        t.is(reply.error?.code, 'too_many_jobs');
        t.regex(reply.error!.message, /has 100 unfinished batches, and may have 100/);
      }
    }
  };
  // An account may send 128 at once, and ten of them can store an input or wait for that.
  await Promise.all(Array.from({ length: 100 }, (_, i) => createTen(i < 10)));
  t.is(statuses.filter((status) => status === 200).length, 100);
  t.is(statuses.filter((status) => status === 429).length, 900);
  const listed = await caller().list<BatchBody>(account, '/v1/batches');
  t.deepEqual(listed.map(({ id }) => id).toSorted(), created.toSorted());
  t.true(listed.every(({ status, reserved }) => status === 'validating' && reserved === 0));
  await checkMoney(t, account, 0n);
  const shard = shardOf(account.id);
  const reservations = Object.values(await stack.redis.hgetall(redisKeys.reservations(shard)));
  t.false(reservations.some((reservation) => reservation.includes(account.id)));
  const files = await caller().list<{ readonly id: string }>(account, '/v1/files');
  t.is(files.length, 1 + inline);
  t.deepEqual(await checkFilesHeld(stack, caller(), account), []);
  t.is(await stack.redis.hget(redisKeys.file(account.id, input_file_id), 'u'), String(100 - inline));
});
