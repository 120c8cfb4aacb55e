import test from 'ava';
import type { LoggedRequest } from '../../scripts/vendor-simulator/request-log.ts';
import { startVendorSimulator, type VendorSimulator } from '../../scripts/vendor-simulator/simulator.ts';
import { readAdmin } from '../support/admin.ts';
import { findRow, readAmountCharged, toNano, waitForQueuedInputs } from '../support/observe.ts';
import { useStack, type TestAccount, type TestStack } from '../support/stack.ts';
import { waitFor } from '../support/wait-for.ts';

/**
 * The gateway merges inputs of many callers into one vendor call. Which inputs are shared, which callers wait, and which
 * callers pay?
 */

interface TestRig {
  readonly stack: TestStack;
  readonly vendor: VendorSimulator;
}

async function startRig(t: Parameters<typeof useStack>[0], vendorModel: string, more = ''): Promise<TestRig> {
  const vendor = await startVendorSimulator({ logCapacity: 10_000 });
  t.teardown(() => vendor.close());
  const stack = await useStack(t, {
    catalog: `
upstreams: { vendor: { kind: openai, baseUrl: "${vendor.url}/v1"${more} } }
models: [{ id: emb, type: embedding, context: 8192, dimensions: { default: 1536, adjustable: true }, pricing: { in_cost_per_million: 1000 }, routes: [{ upstream: vendor, model: "${vendorModel}" }] }]
`,
  });
  return { stack, vendor };
}

interface EmbeddingResult {
  readonly status: number;
  readonly requestId: string;
  readonly body: {
    readonly data: { embedding: number[] }[];
    readonly usage: { prompt_tokens: number; cost_request: number };
    readonly error?: { code: string; message: string };
  };
  readonly endedAt: number;
}

async function embed(
  { stack }: TestRig,
  { apiKey }: TestAccount,
  input: string | string[],
): Promise<EmbeddingResult> {
  const response = await stack.post('/v1/embeddings', apiKey, { model: 'emb', input, dimensions: 8 });
  const body = (await response.json()) as EmbeddingResult['body'];
  const requestId = response.headers.get('x-request-id')!;
  return { status: response.status, requestId, body, endedAt: performance.now() };
}

const oneAtATime = ', maxConcurrency: 1';

const words = 'cat dog bird fish tree house river stone cloud rain wind fire light night day road'.split(' ');

/**
 * Up to 4096 different texts, in words with the same token count at the vendor, so that no account is quarantined.
 */
const textsOf = (name: string, count: number): string[] =>
  Array.from({ length: count }, (_, i) => {
    const [a, b, c] = [i >> 8, (i >> 4) & 15, i & 15].map((wordIndex) => words[wordIndex]!);
    return `${name} ${a} ${b} ${c}`;
  });

const inputsOf = (entry: LoggedRequest): string[] => (entry.body as { input: string[] }).input;

test('equal texts of one account in flight are sent once and charged to each request, but never shared with another account', async (t) => {
  const rig = await startRig(t, 'emb', oneAtATime);
  const [ann, bob] = [await rig.stack.createAccount(), await rig.stack.createAccount()];
  const vendorHold = rig.vendor.hold('emb');
  const first = embed(rig, ann, 'the same text');
  await waitFor('the first call', () => vendorHold.waiting === 1);
  const others = [embed(rig, ann, ['the same text', 'dog']), embed(rig, bob, 'the same text')];
  // All texts are queued except the one in flight.
  await waitForQueuedInputs(rig.stack, 2);
  vendorHold.end();
  const results = await Promise.all([first, ...others]);
  const sentTexts = rig.vendor.requests.entries.flatMap(inputsOf).sort();
  t.deepEqual(sentTexts, ['dog', 'the same text', 'the same text'], 'once per account');
  const [{ body: alone }] = results as [EmbeddingResult];
  for (const { status, body } of results) {
    t.is(status, 200);
    t.deepEqual(body.data[0]!.embedding, alone.data[0]!.embedding);
  }
  t.is(results[1]!.body.usage.prompt_tokens, alone.usage.prompt_tokens + 1, 'the shared text and the dog');
  t.is(results[2]!.body.usage.prompt_tokens, alone.usage.prompt_tokens);
  const costs = results.slice(0, 2).map(({ body }) => toNano(body.usage.cost_request));
  t.true(costs.every((nano) => nano > 0n));
  t.is(await readAmountCharged(rig.stack, ann.id, '100'), costs[0]! + costs[1]!);
});

test('if two requests wait for the same text and the first disconnects, the text is still embedded for the second', async (t) => {
  const rig = await startRig(t, 'emb', oneAtATime);
  const ann = await rig.stack.createAccount();
  const vendorHold = rig.vendor.hold('emb');
  const client = new AbortController();
  const outcome = fetch(`${rig.stack.url}/v1/embeddings`, {
    method: 'POST',
    headers: { authorization: `Bearer ${ann.apiKey}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'emb', input: 'shared', dimensions: 8 }),
    signal: client.signal,
  }).then(
    () => 'responded',
    () => 'disconnected',
  );
  await waitFor('the vendor call', () => vendorHold.waiting === 1);
  const second = embed(rig, ann, ['shared', 'own', 'another']);
  await waitForQueuedInputs(rig.stack, 2);
  client.abort();
  t.is(await outcome, 'disconnected');
  vendorHold.end();
  t.is((await second).status, 200);
  t.deepEqual(rig.vendor.requests.entries.map(inputsOf), [['shared'], ['own', 'another']]);
});

test('a large request is spread evenly over the free vendor slots', async (t) => {
  const rig = await startRig(t, 'emb', ', maxConcurrency: 8');
  const ann = await rig.stack.createAccount();
  const vendorHold = rig.vendor.hold('emb');
  const resultPromise = embed(rig, ann, textsOf('text', 2_048));
  await waitFor('a call in each slot', () => vendorHold.waiting === 8);
  vendorHold.end();
  const { status, body } = await resultPromise;
  t.is(status, 200);
  t.is(body.data.length, 2_048);
  const sizes = rig.vendor.requests.entries.map((entry) => inputsOf(entry).length);
  t.deepEqual(
    sizes,
    Array.from({ length: 8 }, () => 256),
  );
});

test('one account’s large calls delay another’s single input by at most one call', async (t) => {
  const rig = await startRig(t, 'emb', ', maxConcurrency: 1, maxBatchInputs: 512');
  const [heavy, light] = [await rig.stack.createAccount(), await rig.stack.createAccount()];
  const vendorHold = rig.vendor.hold('emb');
  const bulk = Promise.all(['a', 'b', 'c'].map((name) => embed(rig, heavy, textsOf(name, 2_048))));
  await waitForQueuedInputs(rig.stack, 3 * 2_048 - 512);
  vendorHold.release(1);
  await waitForQueuedInputs(rig.stack, 3 * 2_048 - 2 * 512);
  const single = embed(rig, light, 'a single input');
  await waitForQueuedInputs(rig.stack, 3 * 2_048 - 2 * 512 + 1);
  vendorHold.release(2);
  t.is((await single).status, 200);
  const entry = rig.vendor.requests.entries.findIndex((one) => inputsOf(one).includes('a single input'));
  t.is(entry, 2, 'the input is in the next call after the one that was in flight when it arrived');
  vendorHold.end();
  t.true((await bulk).every(({ status }) => status === 200));
  t.is(
    rig.vendor.requests.counters.total,
    13,
    'twelve full calls, and one more for the input displaced by the single one',
  );
});

test('admin queue status shows running requests, those that wait for a call slot, and the inputs that wait in workers', async (t) => {
  const rig = await startRig(t, 'emb', ', maxConcurrency: 1, maxBatchInputs: 2048');
  const heavy = await rig.stack.createAccount();
  const read = () => readAdmin<Record<string, object>>(rig.stack.env, 'queue', 'status');
  const idle = { waiting: 0, waiting_for_slot: 0, active: 0, delayed: 0, failed: 0, workers: 1 };
  t.like(await read(), { chat: idle, image: idle, embedding: { ...idle, inputs_waiting: 0 } });
  const vendorHold = rig.vendor.hold('emb');
  const first = embed(rig, heavy, textsOf('a', 2_048));
  await waitFor('the first call', () => vendorHold.waiting === 1);
  const second = embed(rig, heavy, textsOf('b', 2_048));
  await waitForQueuedInputs(rig.stack, 2_048);
  const { embedding: busy } = await read();
  t.like(busy, { ...idle, waiting: 1, waiting_for_slot: 1, active: 1, inputs_waiting: 2_048 });
  vendorHold.end();
  t.true((await Promise.all([first, second])).every(({ status }) => status === 200));
});

test('one bad input among those of two hundred requests fails only its own request, and is found with few extra vendor calls', async (t) => {
  const rig = await startRig(t, 'emb+poison', ', maxConcurrency: 2');
  const accounts = await Promise.all(Array.from({ length: 4 }, () => rig.stack.createAccount()));
  const vendorHold = rig.vendor.hold('emb+poison');
  const blockers = [embed(rig, accounts[0]!, 'one slot')];
  await waitFor('one vendor slot to be taken', () => vendorHold.waiting === 1);
  blockers.push(embed(rig, accounts[1]!, 'the other'));
  await waitFor('both vendor slots to be taken', () => vendorHold.waiting === 2);
  const requests = Array.from({ length: 200 }, (_, i) =>
    embed(rig, accounts[i % 4]!, i === 77 ? 'this one is poison' : `input number ${i}`),
  );
  await waitForQueuedInputs(rig.stack, 200);
  vendorHold.end();
  t.true((await Promise.all(blockers)).every(({ status }) => status === 200));
  const results = await Promise.all(requests);
  t.deepEqual(
    results.flatMap(({ status }, i) => (status === 200 ? [] : [`${i}: ${status}`])),
    ['77: 400'],
  );
  t.is(results[77]!.body.error?.code, 'upstream_rejected');
  const row = await findRow(rig.stack, results[77]!.requestId);
  t.is(row.costNano, 0n);
  const rejected = rig.vendor.requests.counters.byStatus[400] ?? 0;
  t.true(rejected <= 2 + Math.ceil(Math.log2(200)), `${rejected} rejected calls`);
});

test('an invalid vector fails only its own request, not the others in the same call', async (t) => {
  const rig = await startRig(t, 'emb+overflow', oneAtATime);
  const accounts = await Promise.all(Array.from({ length: 12 }, () => rig.stack.createAccount()));
  const vendorHold = rig.vendor.hold('emb+overflow');
  const blocker = embed(rig, accounts[0]!, 'the one slot');
  await waitFor('the vendor slot to be taken', () => vendorHold.waiting === 1);
  const texts = accounts.map((_, i) => (i === 7 ? 'an overflow here' : `input ${i}`));
  const requests = accounts.map((account, i) => embed(rig, account, texts[i]!));
  await waitForQueuedInputs(rig.stack, 12);
  vendorHold.end();
  t.is((await blocker).status, 200);
  const results = await Promise.all(requests);
  t.deepEqual(
    results.flatMap(({ status }, i) => (status === 200 ? [] : [`${i}: ${status}`])),
    ['7: 400'],
  );
  t.is(results[7]!.body.error?.code, 'upstream_rejected');
  t.is(results[7]!.body.error?.message, 'The model returned a vector with non-finite numbers for the input.');
  t.is(await readAmountCharged(rig.stack, accounts[7]!.id, '100'), 0n);
  t.is(rig.vendor.requests.counters.total, 2, 'one call for the blocker, and one for all twelve inputs');
  for (const [i, { body }] of results.entries()) {
    if (i === 7) continue;
    const alone = await embed(rig, accounts[i]!, texts[i]!);
    t.deepEqual(body.data[0]!.embedding, alone.body.data[0]!.embedding, texts[i]);
  }
});

test('bad inputs in ten of two hundred requests fail only these requests, and the gateway searches for bad inputs only the first time', async (t) => {
  const rig = await startRig(t, 'emb+poison+slow-100', ', maxConcurrency: 1');
  const accounts = await Promise.all(Array.from({ length: 20 }, () => rig.stack.createAccount()));
  const isBad = (i: number): boolean => i % 20 === 7;
  const texts = Array.from({ length: 200 }, (_, i) => (isBad(i) ? `poison ${i}` : `input number ${i}`));
  // The bad inputs come from ten accounts; the other ten accounts send only good ones.
  const embedText = (text: string, i: number) =>
    embed(rig, accounts[Math.floor(i / 20) * 2 + (isBad(i) ? 1 : 0)]!, text);
  const statuses = (await Promise.all(texts.map(embedText))).map(({ status }) => status);
  t.deepEqual(
    statuses,
    texts.map((_, i) => (isBad(i) ? 400 : 200)),
  );

  const before = rig.vendor.requests.entries.length;
  const again = await Promise.all(texts.map((text, i) => embedText(`${text} again`, i)));
  t.deepEqual(
    again.map(({ status }) => status),
    statuses,
  );
  const isPoison = (text: string): boolean => text.startsWith('poison');
  for (const entry of rig.vendor.requests.entries.slice(before)) {
    const inputs = inputsOf(entry);
    t.true(
      inputs.every(isPoison) || !inputs.some(isPoison),
      'a good input shared a call with one of a quarantined account',
    );
  }
});

test('if a vendor rejects all inputs, the search for the bad one ends', async (t) => {
  const rig = await startRig(t, 'emb+fail-400', ', maxConcurrency: 1');
  // Enough accounts that none reaches its limit of running requests. The 200 requests are fewer than a worker runs
  // concurrently.
  const accounts = await Promise.all(Array.from({ length: 6 }, () => rig.stack.createAccount()));
  const vendorHold = rig.vendor.hold('emb+fail-400');
  const first = embed(rig, accounts[0]!, 'the first');
  await waitFor('the first call', () => vendorHold.waiting === 1);
  const others = Array.from({ length: 200 }, (_, i) => embed(rig, accounts[i % 6]!, `input ${i}`));
  await waitForQueuedInputs(rig.stack, 200);
  vendorHold.end();
  const results = await Promise.all([first, ...others]);
  t.true(results.every(({ status }) => status === 400 || status === 502));
  for (const { id } of accounts) t.is(await readAmountCharged(rig.stack, id, '100'), 0n);
  const seen = new Set<string>();
  let [allowed, merged, extraCalls] = [0, 0, 0];
  for (const entry of rig.vendor.requests.entries) {
    const inputs = inputsOf(entry);
    if (inputs.some((input) => seen.has(input))) extraCalls += 1;
    else {
      merged += 1;
      allowed += 64 + Math.ceil(inputs.length / 4);
    }
    for (const input of inputs) seen.add(input);
  }
  t.true(extraCalls <= allowed, `${extraCalls} extra calls for ${merged} rejected merged calls`);
});
