import anyTest, { type ExecutionContext } from 'ava';
import type { VendorSimulator } from '../../scripts/vendor-simulator/simulator.ts';
import { AccountStore } from '../../shared/accounts/account-store.ts';
import { parseRub } from '../../shared/encoding/money.ts';
import { LedgerStore } from '../../shared/ledger/ledger-store.ts';
import { PriceStore } from '../../shared/ledger/price-store.ts';
import { ReservationStore } from '../../shared/money/reservation-store.ts';
import { apiFilePrefix } from '../../shared/platform/storage/file-name.ts';
import { ObjectStore } from '../../shared/platform/storage/object-store.ts';
import { redisKeys, shardOf } from '../../shared/platform/redis/redis-keys.ts';
import { FileStore } from '../../shared/work/files/file-store.ts';
import { describeJobHolds, expireSliceLeases } from '../support/audit-jobs.ts';
import { testOnOneRedis } from '../support/own-stores.ts';
import type { TestAccount, TestStack } from '../support/stack.ts';
import { allQueues } from '../support/stack.ts';
import { startRedisProxy } from '../support/store-proxies.ts';
import { useVendorStack } from '../support/vendor-stack.ts';
import { waitFor } from '../support/wait-for.ts';
import { startRole } from '../support/worker-process.ts';
import { verifyLedger } from './audit.ts';
import { checkBatches } from './batch-audit.ts';
import { BatchCaller, type BatchBody, type BatchInput, type BatchLine } from './batch-load.ts';

/**
 * Slices of batches whose workers die at a certain point. All tests share one stack, whose own worker runs no lines and
 * only does maintenance.
 */

const test = anyTest.serial;

const catalogOf = (vendorUrl: string): string => `
upstreams:
  vendor: { kind: openai, baseUrl: "${vendorUrl}/v1", apiKeys: [vendor-key], maxConcurrency: 512 }
models:
  - { id: chat, type: chat, context: 8192, pricing: { prompt: 7001, completion: 13003 }, routes: [{ upstream: vendor, model: gpt }] }
  - { id: held-chat, type: chat, context: 8192, pricing: { prompt: 7001, completion: 13003 }, routes: [{ upstream: vendor, model: gpt-held }] }
  - { id: image, type: image, context: 8192, size: [1024x1024], pricing: { type: image, cost_per_image: 0.157 }, routes: [{ upstream: vendor, model: img }] }
  - { id: embedding, type: embedding, context: 8192, dimensions: { default: 1536 }, pricing: { in_cost_per_million: 3001 }, routes: [{ upstream: vendor, model: emb }] }
`;

const balance = '100';

let vendor: VendorSimulator;
let stack: TestStack;

useVendorStack(
  anyTest,
  catalogOf,
  (started) => {
    ({ stack, vendor } = started);
  },
  { holdsS3: true, workers: [{ ...allQueues, queues: [] }] },
);

async function create(
  endpoint: string,
  lines: readonly BatchLine[],
): Promise<{ readonly input: BatchInput; readonly batch: BatchBody }> {
  const account = await stack.createAccount({ balance });
  const input = { name: 'batch', account, endpoint, isInline: false, lines };
  return { input, batch: await new BatchCaller([stack.url]).create(input) };
}

const chatLine = (i: number, model = 'chat'): BatchLine => ({
  custom_id: `line-${i}`,
  body: { model, messages: [{ role: 'user', content: `one two ${i}` }], max_tokens: 20 },
});

async function readBatch(account: TestAccount): Promise<BatchBody> {
  const [batch] = await new BatchCaller([stack.url]).list<BatchBody>(account, '/v1/batches');
  return batch!;
}

const waitForEnd = (account: TestAccount): Promise<BatchBody> =>
  waitFor('the batch to end', async () => {
    const batch = await readBatch(account);
    return batch.status === 'completed' && batch;
  });

/** Asserts that each line has one result, that their cost was charged once, and that nothing remains reserved. */
async function checkPaidOnce(t: ExecutionContext, input: BatchInput, failed = 0): Promise<void> {
  const { account } = input;
  const report = await checkBatches(new BatchCaller([stack.url]), account, new Map([[input.name, input]]));
  t.deepEqual(report.problems, []);
  t.is(report.abandoned, failed);
  const { balanceNano, reservedNano } = await stack.readAccount(account.id);
  t.is(parseRub(balance)! - balanceNano, report.costNano);
  t.true(report.costNano > 0n);
  t.is(reservedNano, 0n);
  t.deepEqual(await describeJobHolds(stack.redis, account.id), []);
  const { mongo, redis, config } = stack;
  const stores = {
    redis,
    accounts: new AccountStore(mongo.db, config),
    ledger: new LedgerStore(mongo.db),
    prices: new PriceStore(mongo.db),
    reservations: new ReservationStore(redis),
  };
  t.deepEqual(await verifyLedger(stores, 30_000), []);
}

test('if a worker dies between storing results and settling them, the lines run again, are charged once and appear once, and the lost results are deleted', async (t) => {
  const objects = new ObjectStore(stack.config.s3);
  t.teardown(() => objects.close());
  const listFiles = (): Promise<string[]> =>
    objects.list(apiFilePrefix, 100, apiFilePrefix, new AbortController().signal);
  const before = await listFiles();
  const calls = vendor.requests.counters.total;
  const lines = Array.from({ length: 5 }, (_, i): BatchLine => ({
    custom_id: `line-${i}`,
    body: { model: 'embedding', input: `text ${i}` },
  }));
  const { input, batch } = await create('/v1/embeddings', lines);
  stack.s3Proxy!.hold('PUT /');
  t.teardown(() => stack.s3Proxy!.release());
  const first = await startRole(t, 'worker', stack.env);
  // The input, and the results, whose worker does not get the reply.
  await waitFor('the results', async () => (await listFiles()).length === before.length + 2);
  t.is((await readBatch(input.account)).request_counts.completed, 0);
  const inputKey = await stack.redis.hget(redisKeys.batch(input.account.id, batch.id), 'key');
  const known = new Set([...before, inputKey!]);
  const [lost] = (await listFiles()).filter((key) => !known.has(key));
  await first.kill();
  stack.s3Proxy!.release();
  await expireSliceLeases(stack.redis);
  const second = await startRole(t, 'worker', stack.env);
  const ended = await waitForEnd(input.account);
  t.is(ended.id, batch.id);
  t.true(vendor.requests.counters.total >= calls + 2);
  await checkPaidOnce(t, input);
  t.is(await second.terminate(), 0);
  // As happens a day later.
  const trash = redisKeys.fileTrash(shardOf(input.account.id));
  const trashed = await stack.redis.zrange(trash, '0', '-1');
  t.true(trashed.includes(lost!));
  for (const key of trashed) await stack.redis.zadd(trash, 'XX', 1, key);
  await waitFor('the trash to be empty', async () => (await stack.redis.zcard(trash)) === 0);
  const output = await new FileStore(stack.redis).findContent(input.account.id, ended.output_file_id!);
  const kept = output!.segments.map(({ key }) => key);
  t.true(kept.length > 0);
  const left = await listFiles();
  t.deepEqual(left.toSorted(), [...before, inputKey!, ...kept].toSorted());
});

test('if the object store is unavailable when images arrive, their lines wait for it and succeed', async (t) => {
  const held = vendor.hold('img');
  t.teardown(() => held.end());
  const lines = Array.from({ length: 3 }, (_, i): BatchLine => ({
    custom_id: `line-${i}`,
    body: { model: 'image', prompt: `a red fox ${i}` },
  }));
  const { input } = await create('/v1/images/generations', lines);
  const worker = await startRole(t, 'worker', stack.env, ['--queues', 'image']);
  await waitFor('the calls', () => held.waiting === lines.length);
  const proxy = stack.s3Proxy!;
  proxy.cut();
  t.teardown(() => proxy.release());
  const { refused } = proxy;
  held.end();
  // More connections than one call to the object store makes, for each image.
  await waitFor('the images to be stored in vain', () => proxy.refused >= refused + 8 * lines.length);
  proxy.release();
  await waitForEnd(input.account);
  await checkPaidOnce(t, input);
  t.is(await worker.terminate(), 0);
});

testOnOneRedis(test)(
  'lines whose settlement was applied, but whose worker did not get the reply, are settled once and do not run again',
  async (t) => {
    const held = vendor.hold('gpt-held');
    t.teardown(() => held.end());
    const calls = vendor.requests.counters.total;
    const { input, batch } = await create('/v1/chat/completions', [
      chatLine(0),
      chatLine(1, 'held-chat'),
      chatLine(2),
    ]);
    const { proxy, url } = await startRedisProxy(stack.env['REDIS_URL']!);
    t.teardown(() => proxy.close());
    // The id of the first settlement's usage event.
    proxy.hold(`${batch.id}/1.1/chat`);
    const worker = await startRole(t, 'worker', { ...stack.env, REDIS_URL: url });
    await waitFor('the first settlement', async () => {
      const { request_counts: counts } = await readBatch(input.account);
      return counts.completed === 2;
    });
    const sent = proxy.countSent(`${batch.id}/1.1/chat`);
    // The worker's connections break, and it sends the settlement again.
    proxy.cut();
    proxy.release();
    await waitFor('the second attempt', () => proxy.countSent(`${batch.id}/1.1/chat`) > sent);
    held.end();
    await waitForEnd(input.account);
    t.is(vendor.requests.counters.total, calls + 3);
    await checkPaidOnce(t, input);
    t.is(await worker.terminate(), 0);
  },
);

test('a line that kills its worker every time fails alone, and the other lines of its slice succeed', async (t) => {
  t.timeout(180_000);
  const held = vendor.hold('gpt-held');
  t.teardown(() => held.end());
  const lines = Array.from({ length: 12 }, (_, i) => chatLine(i, i === 1 ? 'held-chat' : 'chat'));
  const { input } = await create('/v1/chat/completions', lines);
  let deaths = 0;
  for (;;) {
    const worker = await startRole(t, 'worker', stack.env, ['--queues', 'chat']);
    const outcome = await waitFor('the line to run, or the batch to end', async () => {
      if (held.waiting > 0) return 'runs';
      return (await readBatch(input.account)).status === 'completed' && 'ended';
    });
    await worker.kill();
    if (outcome === 'ended') break;
    deaths += 1;
    await waitFor('the call to be over', () => held.waiting === 0);
    await expireSliceLeases(stack.redis);
  }
  // All lines together, two of them, and then three times the line alone or with one other.
  t.true(deaths >= 3 && deaths <= 6, `${deaths} deaths`);
  const ended = await readBatch(input.account);
  t.deepEqual(ended.request_counts, { total: 12, completed: 11, failed: 1 });
  await checkPaidOnce(t, input, 1);
});
