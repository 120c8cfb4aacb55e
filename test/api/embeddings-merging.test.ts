import test from 'ava';
import type { LoggedRequest } from '../../scripts/vendor-simulator/request-log.ts';
import { startVendorSimulator, type VendorSimulator } from '../../scripts/vendor-simulator/simulator.ts';
import { readAdmin } from '../support/admin.ts';
import { findRow, readLoss, toNano, waitForInputsInLine } from '../support/observe.ts';
import { useStack, type TestAccount, type TestStack } from '../support/stack.ts';
import { waitFor } from '../support/wait-for.ts';

/** Calls of many callers as one call of the vendor's: who shares what, who waits for whom, and who pays. */

interface Rig {
  readonly stack: TestStack;
  readonly vendor: VendorSimulator;
}

async function startRig(t: Parameters<typeof useStack>[0], vendorModel: string, more = ''): Promise<Rig> {
  const vendor = await startVendorSimulator({ logCapacity: 10_000 });
  t.teardown(() => vendor.close());
  const stack = await useStack(t, {
    catalog: `
upstreams: { vendor: { kind: openai, baseUrl: "${vendor.url}/v1"${more} } }
models: [{ id: emb, type: embedding, context: 8192, dimensions: { default: 8, adjustable: true }, pricing: { in_cost_per_million: 1000 }, routes: [{ upstream: vendor, model: "${vendorModel}" }] }]
`,
  });
  return { stack, vendor };
}

interface Answer {
  readonly status: number;
  readonly requestId: string;
  readonly answer: {
    readonly data: { embedding: number[] }[];
    readonly usage: { prompt_tokens: number; cost_request: number };
    readonly error?: { code: string; message: string };
  };
  readonly endedAt: number;
}

async function embed({ stack }: Rig, { apiKey }: TestAccount, input: string | string[]): Promise<Answer> {
  const response = await stack.post('/v1/embeddings', apiKey, { model: 'emb', input, dimensions: 8 });
  const answer = (await response.json()) as Answer['answer'];
  const requestId = response.headers.get('x-request-id')!;
  return { status: response.status, requestId, answer, endedAt: performance.now() };
}

const oneAtATime = ', maxConcurrency: 1';

const words = 'cat dog bird fish tree house river stone cloud rain wind fire light night day road'.split(' ');

/** Up to 4096 different texts, of words that the vendor counts as we do: nobody is alone because of them. */
const textsOf = (name: string, count: number): string[] =>
  Array.from({ length: count }, (_, i) => {
    const [a, b, c] = [i >> 8, (i >> 4) & 15, i & 15].map((place) => words[place]!);
    return `${name} ${a} ${b} ${c}`;
  });

const inputsOf = (entry: LoggedRequest): string[] => (entry.body as { input: string[] }).input;

test('equal texts of one account that are under way are computed once and paid by each who asked; of another account never', async (t) => {
  const rig = await startRig(t, 'emb', oneAtATime);
  const [ann, bob] = [await rig.stack.createAccount(), await rig.stack.createAccount()];
  const held = rig.vendor.hold('emb');
  const first = embed(rig, ann, 'the same text');
  await waitFor('the first call', () => held.waiting === 1);
  const others = [embed(rig, ann, ['the same text', 'dog']), embed(rig, bob, 'the same text')];
  // All but the one that is under way.
  await waitForInputsInLine(rig.stack, 2);
  held.end();
  const answers = await Promise.all([first, ...others]);
  const asked = rig.vendor.requests.entries.flatMap(inputsOf).sort();
  t.deepEqual(asked, ['dog', 'the same text', 'the same text'], 'once for each account');
  const [{ answer: alone }] = answers as [Answer];
  for (const { status, answer } of answers) {
    t.is(status, 200);
    t.deepEqual(answer.data[0]!.embedding, alone.data[0]!.embedding);
  }
  t.is(answers[1]!.answer.usage.prompt_tokens, alone.usage.prompt_tokens + 1, 'the same and the dog');
  t.is(answers[2]!.answer.usage.prompt_tokens, alone.usage.prompt_tokens);
  const paid = answers.slice(0, 2).map(({ answer }) => toNano(answer.usage.cost_request));
  t.true(paid.every((nano) => nano > 0n));
  t.is(await readLoss(rig.stack, ann.id, '100'), paid[0]! + paid[1]!);
});

test('a text whose first asker leaves is still computed for the second', async (t) => {
  const rig = await startRig(t, 'emb', oneAtATime);
  const ann = await rig.stack.createAccount();
  const held = rig.vendor.hold('emb');
  const leaving = new AbortController();
  const left = fetch(`${rig.stack.url}/v1/embeddings`, {
    method: 'POST',
    headers: { authorization: `Bearer ${ann.apiKey}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'emb', input: 'shared', dimensions: 8 }),
    signal: leaving.signal,
  }).then(
    () => 'answered',
    () => 'left',
  );
  await waitFor('the call', () => held.waiting === 1);
  const second = embed(rig, ann, ['shared', 'own', 'another']);
  await waitForInputsInLine(rig.stack, 2);
  leaving.abort();
  t.is(await left, 'left');
  held.end();
  t.is((await second).status, 200);
  t.deepEqual(rig.vendor.requests.entries.map(inputsOf), [['shared'], ['own', 'another']]);
});

test('a large request is spread evenly over the slots that are free', async (t) => {
  const rig = await startRig(t, 'emb', ', maxConcurrency: 8');
  const ann = await rig.stack.createAccount();
  const held = rig.vendor.hold('emb');
  const answered = embed(rig, ann, textsOf('text', 2_048));
  await waitFor('a call in each slot', () => held.waiting === 8);
  held.end();
  const { status, answer } = await answered;
  t.is(status, 200);
  t.is(answer.data.length, 2_048);
  const sizes = rig.vendor.requests.entries.map((entry) => inputsOf(entry).length);
  t.deepEqual(
    sizes,
    Array.from({ length: 8 }, () => 256),
  );
});

test('one account’s large calls keep another’s single input waiting for one call at the most', async (t) => {
  const rig = await startRig(t, 'emb', ', maxConcurrency: 1, maxBatchInputs: 512');
  const [heavy, light] = [await rig.stack.createAccount(), await rig.stack.createAccount()];
  const held = rig.vendor.hold('emb');
  const bulk = Promise.all(['a', 'b', 'c'].map((name) => embed(rig, heavy, textsOf(name, 2_048))));
  await waitForInputsInLine(rig.stack, 3 * 2_048 - 512);
  held.release(1);
  await waitForInputsInLine(rig.stack, 3 * 2_048 - 2 * 512);
  const single = embed(rig, light, 'a single input');
  await waitForInputsInLine(rig.stack, 3 * 2_048 - 2 * 512 + 1);
  held.release(2);
  t.is((await single).status, 200);
  const entry = rig.vendor.requests.entries.findIndex((one) => inputsOf(one).includes('a single input'));
  t.is(entry, 2, 'the first call after the one that was under way when it came');
  held.end();
  t.true((await bulk).every(({ status }) => status === 200));
  t.is(rig.vendor.requests.counters.total, 13, 'twelve full calls, and the single’s own room in one of them');
});

test('admin queue status tells what accounts with much to do have under way, and how many inputs wait in workers', async (t) => {
  const rig = await startRig(t, 'emb', ', maxConcurrency: 1, maxBatchInputs: 2048');
  const heavy = await rig.stack.createAccount();
  const read = () => readAdmin<Record<string, object>>(rig.stack.env, 'queue', 'status');
  const idle = { waiting: 0, active: 0, delayed: 0, failed: 0, workers: 1 };
  t.deepEqual(await read(), {
    chat: idle,
    image: { ...idle, bulk: { waiting: 0, active: 0 } },
    embedding: { ...idle, bulk: { waiting: 0, active: 0 }, inputs_waiting: 0 },
  });
  const held = rig.vendor.hold('emb');
  const first = embed(rig, heavy, textsOf('a', 2_048));
  await waitFor('the first call', () => held.waiting === 1);
  const second = embed(rig, heavy, textsOf('b', 2_048));
  await waitForInputsInLine(rig.stack, 2_048);
  const { embedding: busy } = await read();
  t.deepEqual(busy, { ...idle, active: 2, bulk: { waiting: 0, active: 2 }, inputs_waiting: 2_048 });
  held.end();
  t.true((await Promise.all([first, second])).every(({ status }) => status === 200));
});

test('a bad input among two hundred callers fails its caller alone, and is found with few further calls', async (t) => {
  const rig = await startRig(t, 'emb+poison', ', maxConcurrency: 2');
  const accounts = await Promise.all(Array.from({ length: 4 }, () => rig.stack.createAccount()));
  const held = rig.vendor.hold('emb+poison');
  const blockers = [embed(rig, accounts[0]!, 'one slot')];
  await waitFor('one slot to be taken', () => held.waiting === 1);
  blockers.push(embed(rig, accounts[1]!, 'the other'));
  await waitFor('both slots to be taken', () => held.waiting === 2);
  const asks = Array.from({ length: 200 }, (_, i) =>
    embed(rig, accounts[i % 4]!, i === 77 ? 'this one is poison' : `input number ${i}`),
  );
  await waitForInputsInLine(rig.stack, 200);
  held.end();
  t.true((await Promise.all(blockers)).every(({ status }) => status === 200));
  const answers = await Promise.all(asks);
  t.deepEqual(
    answers.flatMap(({ status }, i) => (status === 200 ? [] : [`${i}: ${status}`])),
    ['77: 422'],
  );
  t.is(answers[77]!.answer.error?.code, 'upstream_rejected');
  const row = await findRow(rig.stack, answers[77]!.requestId);
  t.is(row.costNano, 0n);
  const refused = rig.vendor.requests.counters.byStatus[400] ?? 0;
  t.true(refused <= 2 + Math.ceil(Math.log2(200)), `${refused} refused calls`);
});

test('a vector without finite numbers fails its caller alone, of all whose inputs went with it', async (t) => {
  const rig = await startRig(t, 'emb+overflow', oneAtATime);
  const accounts = await Promise.all(Array.from({ length: 12 }, () => rig.stack.createAccount()));
  const held = rig.vendor.hold('emb+overflow');
  const blocker = embed(rig, accounts[0]!, 'the one slot');
  await waitFor('the slot to be taken', () => held.waiting === 1);
  const texts = accounts.map((_, i) => (i === 7 ? 'an overflow here' : `input ${i}`));
  const asks = accounts.map((account, i) => embed(rig, account, texts[i]!));
  await waitForInputsInLine(rig.stack, 12);
  held.end();
  t.is((await blocker).status, 200);
  const answers = await Promise.all(asks);
  t.deepEqual(
    answers.flatMap(({ status }, i) => (status === 200 ? [] : [`${i}: ${status}`])),
    ['7: 422'],
  );
  t.is(answers[7]!.answer.error?.code, 'upstream_rejected');
  t.is(
    answers[7]!.answer.error?.message,
    'The model gave the input a vector that is not all finite numbers.',
  );
  t.is(await readLoss(rig.stack, accounts[7]!.id, '100'), 0n);
  t.is(rig.vendor.requests.counters.total, 2, 'all twelve went together');
  for (const [i, { answer }] of answers.entries()) {
    if (i === 7) continue;
    const alone = await embed(rig, accounts[i]!, texts[i]!);
    t.deepEqual(answer.data[0]!.embedding, alone.answer.data[0]!.embedding, texts[i]);
  }
});

test('ten accounts’ bad inputs among two hundred callers fail their callers alone, and none of them costs others a search again', async (t) => {
  const rig = await startRig(t, 'emb+poison+slow-100', ', maxConcurrency: 1');
  const accounts = await Promise.all(Array.from({ length: 20 }, () => rig.stack.createAccount()));
  const isBad = (i: number): boolean => i % 20 === 7;
  const texts = Array.from({ length: 200 }, (_, i) => (isBad(i) ? `poison ${i}` : `input number ${i}`));
  // Each bad one is of another account, of which half send nothing bad.
  const ask = (text: string, i: number) =>
    embed(rig, accounts[Math.floor(i / 20) * 2 + (isBad(i) ? 1 : 0)]!, text);
  const statuses = (await Promise.all(texts.map(ask))).map(({ status }) => status);
  t.deepEqual(
    statuses,
    texts.map((_, i) => (isBad(i) ? 422 : 200)),
  );

  const before = rig.vendor.requests.entries.length;
  const again = await Promise.all(texts.map((text, i) => ask(`${text} again`, i)));
  t.deepEqual(
    again.map(({ status }) => status),
    statuses,
  );
  const isOfBad = (text: string): boolean => text.startsWith('poison');
  for (const entry of rig.vendor.requests.entries.slice(before)) {
    const inputs = inputsOf(entry);
    t.true(
      inputs.every(isOfBad) || !inputs.some(isOfBad),
      'an innocent input went with one of an account in quarantine',
    );
  }
});

test('where a vendor refuses everybody the search for who is at fault ends', async (t) => {
  const rig = await startRig(t, 'emb+fail-400', ', maxConcurrency: 1');
  // So many that none of them has enough running to wait for its share, and fewer requests than a worker runs at once.
  const accounts = await Promise.all(Array.from({ length: 6 }, () => rig.stack.createAccount()));
  const held = rig.vendor.hold('emb+fail-400');
  const first = embed(rig, accounts[0]!, 'the first');
  await waitFor('the first call', () => held.waiting === 1);
  const others = Array.from({ length: 200 }, (_, i) => embed(rig, accounts[i % 6]!, `input ${i}`));
  await waitForInputsInLine(rig.stack, 200);
  held.end();
  const answers = await Promise.all([first, ...others]);
  t.true(answers.every(({ status }) => status === 422 || status === 502));
  for (const { id } of accounts) t.is(await readLoss(rig.stack, id, '100'), 0n);
  const asked = new Set<string>();
  let [allowed, merged, further] = [0, 0, 0];
  for (const entry of rig.vendor.requests.entries) {
    const inputs = inputsOf(entry);
    if (inputs.some((input) => asked.has(input))) further += 1;
    else {
      merged += 1;
      allowed += 64 + Math.ceil(inputs.length / 4);
    }
    for (const input of inputs) asked.add(input);
  }
  t.true(further <= allowed, `${further} further calls for ${merged} that were refused`);
});
