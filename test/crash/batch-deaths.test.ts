import { setTimeout as delay } from 'node:timers/promises';
import test from 'ava';
import { startVendorSimulator } from '../../scripts/vendor-simulator/simulator.ts';
import { runRefill } from '../../shared/accounts/refill-script.ts';
import { parseRub } from '../../shared/encoding/money.ts';
import { createRefillEvent } from '../../shared/ledger/usage-event.ts';
import { describeJobHolds } from '../support/audit-jobs.ts';
import type { TestAccount } from '../support/stack.ts';
import { waitFor } from '../support/wait-for.ts';
import { verifyLedger, waitUntilQuiet } from './audit.ts';
import { checkBatches, checkFilesHeld } from './batch-audit.ts';
import { BatchCaller, type BatchBody, type BatchInput, type BatchLine } from './batch-load.ts';
import { useProcessStack } from './process-stack.ts';
import { createSeededRandom } from './seeded-random.ts';

/** Batches while their workers, the api and Redis die. */

const rounds = process.env['TEST_LONG'] === 'on' ? 24 : 8;
/** How long the processes run before each death, plus a random part. */
const workMs = 400;
const balance = '1000';
const accountCount = 4;

const catalogOf = (vendorUrl: string): string => {
  const route = (model: string): string => `routes: [{ upstream: vendor, model: "${model}" }]`;
  return `
upstreams:
  vendor: { kind: openai, baseUrl: "${vendorUrl}/v1", apiKeys: [vendor-key], maxConcurrency: 48 }
models:
  - { id: chat, type: chat, context: 8192, max_output_tokens: 512, pricing: { prompt: 7001, completion: 13003 }, ${route('gpt+slow-1000')} }
  - { id: other-chat, type: chat, context: 8192, max_output_tokens: 512, pricing: { prompt: 11, completion: 17 }, ${route('gpt+slow-1500')} }
  - { id: embedding, type: embedding, context: 8192, dimensions: { default: 1536 }, pricing: { in_cost_per_million: 3001 }, ${route('emb+slow-800')} }
  - { id: other-embedding, type: embedding, context: 8192, dimensions: { default: 1536 }, pricing: { in_cost_per_million: 7013 }, ${route('emb+slow-1200')} }
  - { id: image, type: image, context: 8192, size: [1024x1024], pricing: { type: image, cost_per_image: 0.157 }, ${route('img+slow-2000')} }
`;
};

interface BatchKind {
  readonly endpoint: string;
  readonly lines: number;
  readonly models: readonly string[];
  readonly toBody: (i: number) => Record<string, unknown>;
}

const batchKinds: readonly BatchKind[] = [
  {
    endpoint: '/v1/embeddings',
    lines: 300,
    models: ['embedding', 'other-embedding'],
    toBody: (i) => ({
      input: i % 3 === 0 ? [`one ${i}`, `two three ${i}`] : `text ${i}`,
      encoding_format: i % 2 === 0 ? 'base64' : 'float',
    }),
  },
  {
    endpoint: '/v1/chat/completions',
    lines: 90,
    models: ['chat', 'other-chat'],
    toBody: (i) => ({ messages: [{ role: 'user', content: `one two ${i}` }], max_tokens: 20 }),
  },
  {
    endpoint: '/v1/images/generations',
    lines: 12,
    models: ['image'],
    toBody: (i) => ({ prompt: `a red fox ${i}` }),
  },
];

/** Two in five are embeddings, two are chats, and one has images. */
const kindOf = (batch: number): BatchKind => batchKinds[[0, 1, 0, 1, 2][batch % 5]!]!;

/** One in twelve lines is bad in some batches: its model does not exist, or it asks for a stream. */
function createInput(batch: number, account: TestAccount): BatchInput {
  const { endpoint, lines: count, models, toBody } = kindOf(batch);
  const modelCount = batch % 2 === 0 ? models.length : 1;
  const hasBadLines = batch % 3 === 0;
  const lines = Array.from({ length: count }, (_, i): BatchLine => {
    const body = { model: models[i % modelCount]!, ...toBody(i) };
    if (!hasBadLines || i % 12 !== 5) return { custom_id: `line-${i}`, body };
    const fault = i % 24 === 5 ? { model: 'no-such-model' } : { stream: true };
    return { custom_id: `bad-${i}`, body: { ...body, ...fault } };
  });
  return { name: `batch-${batch}`, account, endpoint, isInline: batch % 4 === 1, lines };
}

test('if workers, apis and Redis are killed while 20 batches run, each line has one result and is charged once', async (t) => {
  t.timeout(8 * 60_000);
  const random = createSeededRandom(process.env['TEST_SEED']);
  t.log(`TEST_SEED=${random.seed}`);
  const vendor = await startVendorSimulator({ logCapacity: 0 });
  t.teardown(() => vendor.close());
  const stack = await useProcessStack(t, catalogOf(vendor.url));
  // By the beginnings of their names. A store that the test did not start is not killed.
  const kinds = ['worker', 'api', 'redis', 'a Redis master']
    .map((kind) => stack.victims.filter(({ name }) => name.startsWith(kind)))
    .filter((victims) => victims.length > 0);
  const accounts: TestAccount[] = [];
  for (let i = 0; i < accountCount; i++) {
    const account = await stack.accounts.create({ userType: 'default', requestsPerMinute: 1_000_000 });
    accounts.push(account);
    await stack.hotAccounts.load(account.id);
    const event = createRefillEvent(`first-${account.id}`, account.id, 'test');
    await runRefill(stack.redis, { amountNano: parseRub(balance)!, freeRequests: 0, event });
  }
  const inputs = Array.from({ length: 20 }, (_, i) => createInput(i, accounts[i % accountCount]!));
  const caller = new BatchCaller(stack.urls);
  const created: Promise<BatchBody>[] = [];
  const perRound = Math.ceil(inputs.length / (rounds - 2));
  for (let round = 1; round <= rounds; round++) {
    for (const input of inputs.slice((round - 1) * perRound, round * perRound)) {
      const creation = caller.create(input);
      creation.catch(() => undefined);
      created.push(creation);
    }
    await delay(workMs + 3 * workMs * random.next());
    const victim = random.choose(kinds[round % kinds.length]!);
    await victim.kill();
    await delay(workMs * random.next());
    await victim.restart();
    t.log(`round ${round}: ${victim.name} killed`);
  }
  t.is((await Promise.all(created)).length, inputs.length);
  let open: readonly BatchBody[] = [];
  const startedAtMs = performance.now();
  await waitFor(
    () => `the batches ${JSON.stringify(open)}`,
    async () => {
      const all = await Promise.all(
        accounts.map((account) => caller.list<BatchBody>(account, '/v1/batches')),
      );
      open = all.flat().filter(({ status }) => !['completed', 'failed'].includes(status));
      return open.length === 0 || (await delay(200), false);
    },
    // A slice of which two workers died runs in 64 parts, one after the other.
    240_000,
  );
  t.log(
    `the last batches ended ${((performance.now() - startedAtMs) / 1_000).toFixed(1)} s after the last death`,
  );
  await waitUntilQuiet(stack, 45_000);
  const byName = new Map(inputs.map((input) => [input.name, input]));
  let lines = 0;
  let abandoned = 0;
  for (const account of accounts) {
    const report = await checkBatches(caller, account, byName);
    t.deepEqual(report.problems.slice(0, 5), []);
    const { balanceNano, reservedNano } = await stack.hotAccounts.get(account.id);
    t.is(parseRub(balance)! - balanceNano, report.costNano);
    t.true(report.costNano > 0n);
    t.is(reservedNano, 0n);
    t.deepEqual(await describeJobHolds(stack.redis, account.id), []);
    t.deepEqual(await checkFilesHeld(stack, caller, account), []);
    lines += report.lines;
    abandoned += report.abandoned;
  }
  t.log(`${lines} lines, ${abandoned} of which failed because their workers died`);
  t.deepEqual(await verifyLedger(stack, 30_000), []);
});
