import { readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { startVendorSimulator, type VendorSimulator } from '../../scripts/vendor-simulator/simulator.ts';
import { deriveVector } from '../../scripts/vendor-simulator/vectors.ts';
import { countTokens } from '../../shared/pricing/count-tokens.ts';
import { CacheUseStore, type CacheUse } from '../../shared/vector-cache/cache-use-store.ts';
import { findKeys } from '../support/all-of-redis.ts';
import { readAdmin, runAdmin } from '../support/admin.ts';
import { findRow, readLoss, toNano, waitForNoReservation } from '../support/observe.ts';
import { startScriptedVendor, type ScriptedVendor } from '../support/scripted-vendor.ts';
import { startStack, type TestAccount, type TestStack } from '../support/stack.ts';
import { waitFor } from '../support/wait-for.ts';

/** Vectors that are kept, through HTTP: a second asking is quicker, and differs in nothing else. */

const cached = 'embeddingCache: { ttl: 600, maxBytes: 10000000 }';

const vectorModel = (id: string, pricing = '{ in_cost_per_million: 7.77 }', more = cached): string =>
  `  - { id: ${id}, type: embedding, context: 8192, dimensions: { default: 1536, adjustable: true }, ${more}, pricing: ${pricing}, routes: [{ upstream: vendor, model: "emb-${id}" }] }`;

const catalogOf = (vendorUrl: string, scriptedUrl: string): string => `
upstreams:
  vendor: { kind: openai, baseUrl: "${vendorUrl}/v1", apiKeys: [sk-vendor-key-0123456789] }
  scripted: { kind: openai, baseUrl: "${scriptedUrl}/v1" }
models:
${['twice', 'partly', 'accounts', 'lengths', 'forms', 'rerouted', 'admin', 'again'].map((id) => vectorModel(id)).join('\n')}
${vectorModel('uncached', '{ in_cost_per_million: 7.77 }', 'max_output_tokens: 1')}
${vectorModel('counted+nousage')}
${vectorModel('foreign+dear-50')}
${vectorModel('single+dear-50')}
${vectorModel('by-time+slow-50', '{ type: time, cost_per_second: 0.01 }')}
${vectorModel('by-character', '{ type: characters, cost_per_million: 3.33 }')}
${vectorModel('free', '{ in_cost_per_million: 7.77, free_requests: true }')}
  - { id: fickle, type: embedding, context: 8192, dimensions: { default: 4 }, ${cached}, pricing: { in_cost_per_million: 7.77 }, routes: [{ upstream: scripted }] }
`;

/** A vendor whose vectors are of 4 numbers, but of 3 for a text that says so. */
const answerFickle = (body: Readonly<Record<string, unknown>>): object => {
  const inputs = body['input'] as string[];
  const length = inputs.some((text) => text.includes('short')) ? 3 : 4;
  const embedding = Array.from({ length }, (_, i) => i + 0.5);
  return {
    object: 'list',
    model: 'fickle',
    data: inputs.map((_, index) => ({ object: 'embedding', index, embedding })),
    usage: { prompt_tokens: inputs.length, total_tokens: inputs.length },
  };
};

let stack: TestStack;
let vendor: VendorSimulator;
let scripted: ScriptedVendor;

test.before(async () => {
  vendor = await startVendorSimulator();
  scripted = await startScriptedVendor(answerFickle);
  stack = await startStack({ catalog: catalogOf(vendor.url, scripted.url) });
});
test.after.always(async () => {
  await stack?.close();
  await vendor?.close();
  await scripted?.close();
});

interface Answer {
  readonly data: readonly { readonly index: number; readonly embedding: number[] | string }[];
  readonly usage: {
    readonly prompt_tokens: number;
    readonly cost_request: number;
    readonly free_request: boolean;
  };
  readonly error?: { readonly code: string };
}

interface Asked {
  readonly status: number;
  readonly answer: Answer;
  readonly requestId: string;
}

async function embed(
  account: TestAccount,
  model: string,
  input: string | readonly string[],
  more: object = {},
): Promise<Asked> {
  const response = await stack.post('/v1/embeddings', account.apiKey, { model, input, ...more });
  const answer = (await response.json()) as Answer;
  return { status: response.status, answer, requestId: response.headers.get('x-request-id')! };
}

const inputsSentTo = (model: string): string[] =>
  vendor.requests.entries
    .filter((entry) => entry.model === `emb-${model}`)
    .flatMap((entry) => entry.body!['input'] as string[]);

const readUse = (model: string): Promise<CacheUse> => new CacheUseStore(stack.redis).read(model);

/** Nobody waits for what is kept, so a test has to. */
async function waitForEntries(model: string, entries: number): Promise<void> {
  await waitFor(`${entries} kept vectors of ${model}`, async () => {
    return (await readUse(model)).entries === entries;
  });
}

function readBytes(embedding: number[] | string): Buffer {
  return typeof embedding === 'string'
    ? Buffer.from(embedding, 'base64')
    : Buffer.from(Float32Array.from(embedding).buffer);
}

function isVectorOf(t: ExecutionContext, { status, answer }: Asked, texts: readonly string[]): void {
  t.is(status, 200, JSON.stringify(answer).slice(0, 300));
  t.is(answer.data.length, texts.length);
  for (const [i, { index, embedding }] of answer.data.entries()) {
    t.is(index, i);
    const bytes = readBytes(embedding);
    t.true(bytes.equals(Buffer.from(deriveVector(texts[i]!, bytes.length / 4).buffer)), texts[i]);
  }
}

test('what was asked before does not reach the vendor again, and is billed and logged the same', async (t) => {
  const account = await stack.createAccount();
  const texts = ['a cat', 'on the mat', 'a cat'];
  const first = await embed(account, 'twice', texts);
  await waitForEntries('twice', 2);
  const second = await embed(account, 'twice', texts);
  for (const asked of [first, second]) isVectorOf(t, asked, texts);
  t.deepEqual(inputsSentTo('twice').sort(), ['a cat', 'on the mat']);
  t.deepEqual(second.answer.usage.prompt_tokens, first.answer.usage.prompt_tokens);
  t.is(second.answer.usage.cost_request, first.answer.usage.cost_request);
  t.is(toNano(second.answer.usage.cost_request), 7n * 7_770n);
  t.is(await readLoss(stack, account.id, '100'), 2n * 7n * 7_770n);
  const rows = await Promise.all([first, second].map((one) => findRow(stack, one.requestId)));
  for (const row of rows) {
    t.like(row, { success: true, responseCode: 200, promptTokens: 7, counted: false, costNano: 54_390n });
  }
  t.is(rows[1]!.billedMs, 0);
  await waitForNoReservation(stack, account.id);
});

test('of a request that is known in part, only the rest reaches the vendor, and the order stays', async (t) => {
  const account = await stack.createAccount();
  await embed(account, 'partly', ['b', 'd']);
  await waitForEntries('partly', 2);
  const texts = ['a', 'b', 'c', 'd', 'a'];
  const asked = await embed(account, 'partly', texts);
  isVectorOf(t, asked, texts);
  t.is(asked.answer.usage.prompt_tokens, 5);
  t.deepEqual(inputsSentTo('partly').sort(), ['a', 'b', 'c', 'd']);
});

test('what one account has asked for never answers another', async (t) => {
  const [ann, bob] = await Promise.all([stack.createAccount(), stack.createAccount()]);
  await embed(ann, 'accounts', 'secret plan');
  await waitForEntries('accounts', 1);
  isVectorOf(t, await embed(bob, 'accounts', 'secret plan'), ['secret plan']);
  t.deepEqual(inputsSentTo('accounts'), ['secret plan', 'secret plan']);
  await waitForEntries('accounts', 2);
  for (const account of [ann, bob]) await embed(account, 'accounts', 'secret plan');
  t.is(inputsSentTo('accounts').length, 2);
});

test('each number of dimensions is kept for itself', async (t) => {
  const account = await stack.createAccount();
  const lengths = [undefined, 8, 16];
  for (const dimensions of lengths) await embed(account, 'lengths', 'same', { dimensions });
  await waitForEntries('lengths', 3);
  for (const dimensions of lengths) {
    const asked = await embed(account, 'lengths', 'same', { dimensions });
    isVectorOf(t, asked, ['same']);
    t.is(readBytes(asked.answer.data[0]!.embedding).length, 4 * (dimensions ?? 1536));
  }
  t.is(inputsSentTo('lengths').length, 3);
  // The model's own length is not another because it is asked for by its number.
  isVectorOf(t, await embed(account, 'lengths', 'same', { dimensions: 1536 }), ['same']);
  t.is(inputsSentTo('lengths').length, 3);
});

test('base64 and floats are the same to the bit, kept or not', async (t) => {
  const account = await stack.createAccount();
  const ask = async (encoding_format: string): Promise<Buffer> => {
    const { answer } = await embed(account, 'forms', 'one text', { encoding_format });
    return readBytes(answer.data[0]!.embedding);
  };
  const asked = await ask('float');
  await waitForEntries('forms', 1);
  for (const form of ['base64', 'float']) t.true((await ask(form)).equals(asked), form);
  t.is(inputsSentTo('forms').length, 1);
});

test('a model without a cache is asked each time, and nothing of it is kept', async (t) => {
  const account = await stack.createAccount();
  for (let i = 0; i < 3; i++) isVectorOf(t, await embed(account, 'uncached', 'same'), ['same']);
  t.is(inputsSentTo('uncached').length, 3);
  t.deepEqual(await findKeys(stack.redis, 'mg:{vectors:uncached}:*'), []);
});

test('what the vendor did not count stays told to be our count', async (t) => {
  const account = await stack.createAccount();
  await embed(account, 'counted+nousage', 'cat cat cat');
  await waitForEntries('counted+nousage', 1);
  const asked = await embed(account, 'counted+nousage', 'cat cat cat');
  t.is(asked.answer.usage.prompt_tokens, 3);
  t.true((await findRow(stack, asked.requestId)).counted);
  t.is(inputsSentTo('counted+nousage').length, 1);
});

test('a text is kept with no share of what its vendor counts for the text beside it', async (t) => {
  const account = await stack.createAccount();
  const [dear, plain] = ['dear', 'word'].map((word) => Array<string>(100).fill(word).join(' ')) as [
    string,
    string,
  ];
  const first = await embed(account, 'foreign+dear-50', [dear, plain]);
  t.is(first.answer.usage.prompt_tokens, 5_100, 'the call itself costs all that the vendor counted');
  await waitForEntries('foreign+dear-50', 2);
  for (const text of [plain, dear]) {
    const asked = await embed(account, 'foreign+dear-50', text);
    const own = countTokens(text);
    t.is(asked.answer.usage.prompt_tokens, own);
    const costNano = BigInt(own) * 7_770n;
    t.like(await findRow(stack, asked.requestId), { promptTokens: own, counted: true, costNano });
  }
  t.deepEqual(inputsSentTo('foreign+dear-50').sort(), [dear, plain]);
});

test('a text that was alone in its call is kept with what the vendor counted for it', async (t) => {
  const account = await stack.createAccount();
  for (let i = 0; i < 2; i++) {
    const asked = await embed(account, 'single+dear-50', 'dear cat');
    t.is(asked.answer.usage.prompt_tokens, 100);
    t.false((await findRow(stack, asked.requestId)).counted);
    await waitForEntries('single+dear-50', 1);
  }
  t.is(inputsSentTo('single+dear-50').length, 1);
});

test('characters are paid as asked, the vendor’s time only where it passed', async (t) => {
  const account = await stack.createAccount();
  await embed(account, 'by-character', '12345');
  await embed(account, 'by-time+slow-50', 'cat');
  await Promise.all([waitForEntries('by-character', 1), waitForEntries('by-time+slow-50', 1)]);
  const before = await readLoss(stack, account.id, '100');
  const asked = await embed(account, 'by-character', '12345');
  t.is(toNano(asked.answer.usage.cost_request), 16_650n);
  const timed = await embed(account, 'by-time+slow-50', 'cat');
  t.is(timed.answer.usage.cost_request, 0);
  t.is((await readLoss(stack, account.id, '100')) - before, 16_650n);
  t.like(await findRow(stack, timed.requestId), { success: true, billedMs: 0, costNano: 0n });
});

test('a free request is used up by what is kept as well', async (t) => {
  const account = await stack.createAccount({ freeRequests: 2 });
  await embed(account, 'free', 'cat');
  await waitForEntries('free', 1);
  const asked = [await embed(account, 'free', 'cat'), await embed(account, 'free', 'cat')];
  t.deepEqual(
    asked.map((one) => one.answer.usage.free_request),
    [true, false],
  );
  t.is(await readLoss(stack, account.id, '100'), 7_770n);
});

test('many at once for what is kept are each answered and each paid', async (t) => {
  const account = await stack.createAccount();
  const texts = Array.from({ length: 20 }, (_, i) => `text ${i}`);
  await embed(account, 'again', texts);
  await waitForEntries('again', 20);
  const answers = await Promise.all(
    Array.from({ length: 40 }, (_, i) => embed(account, 'again', texts[i % 20]!)),
  );
  for (const [i, asked] of answers.entries()) isVectorOf(t, asked, [texts[i % 20]!]);
  t.is(inputsSentTo('again').length, 20);
  t.is(await readLoss(stack, account.id, '100'), (40n + 80n) * 7_770n);
});

test('vectors of different lengths are no answer: nobody is given them, and nobody pays', async (t) => {
  const account = await stack.createAccount();
  t.is((await embed(account, 'fickle', 'long')).status, 200);
  await waitForEntries('fickle', 1);
  const mixed = await embed(account, 'fickle', ['long', 'short']);
  t.is(mixed.status, 502);
  t.is(mixed.answer.error?.code, 'upstream_error');
  t.is(await readLoss(stack, account.id, '100'), 7_770n);
  t.is((await readUse('fickle')).entries, 1);
});

test('admin model list tells how each cache is used', async (t) => {
  const account = await stack.createAccount();
  await embed(account, 'admin', ['a', 'b']);
  await waitForEntries('admin', 2);
  await embed(account, 'admin', ['b', 'c']);
  await waitForEntries('admin', 3);
  interface Row {
    readonly id: string;
    readonly embedding_cache: CacheUse | null;
  }
  const rows = await readAdmin<Row[]>(stack.env, 'model', 'list');
  const find = (id: string) => rows.find((row) => row.id === id)!.embedding_cache;
  const { bytes, ...counts } = find('admin')!;
  t.deepEqual(counts, { hits: 1, misses: 3, entries: 3 });
  t.true(bytes > 3 * 1536 * 4 && bytes < 3 * 8_000, `${bytes} bytes`);
  t.is(find('uncached'), null);
  const { stdout } = await runAdmin(stack.env, 'model', 'list');
  t.regex(stdout, /hits 1, misses 3, entries 3, bytes \d+/);
});

test('a model that is served by another from now on is asked anew', async (t) => {
  const account = await stack.createAccount();
  await embed(account, 'rerouted', 'same');
  await waitForEntries('rerouted', 1);
  const path = stack.config.catalogPath;
  const text = (await readFile(path, 'utf8')).replace('"emb-rerouted"', '"emb-rerouted-v2"');
  await writeFile(join(stack.dir, 'next.yaml'), text);
  await rename(join(stack.dir, 'next.yaml'), path);
  await waitFor('the new model to be asked', async () => {
    isVectorOf(t, await embed(account, 'rerouted', 'same'), ['same']);
    return inputsSentTo('rerouted-v2').length === 1;
  });
  t.is(inputsSentTo('rerouted').length, 1);
});
