import { readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { startVendorSimulator, type VendorSimulator } from '../../scripts/vendor-simulator/simulator.ts';
import { deriveVector } from '../../scripts/vendor-simulator/vectors.ts';
import { countTokens } from '../../shared/catalog/count-tokens.ts';
import { CacheUseStore, type CacheUse } from '../../shared/work/cache-use-store.ts';
import { findKeys } from '../support/all-of-redis.ts';
import { readAdmin, runAdmin } from '../support/admin.ts';
import { findRow, readAmountCharged, toNano, waitForNoReservation } from '../support/observe.ts';
import { startScriptedVendor, type ScriptedVendor } from '../support/scripted-vendor.ts';
import { startStack, type TestAccount, type TestStack } from '../support/stack.ts';
import { waitFor } from '../support/wait-for.ts';

/** The embedding cache through HTTP: a repeated request is faster, but otherwise has the same result. */

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

/** A vendor whose vectors have 4 numbers, or 3 if a text contains "short". */
const respondWithChangingLength = (body: Readonly<Record<string, unknown>>): object => {
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
  scripted = await startScriptedVendor(respondWithChangingLength);
  stack = await startStack({ catalog: catalogOf(vendor.url, scripted.url) });
});
test.after.always(async () => {
  await stack?.close();
  await vendor?.close();
  await scripted?.close();
});

interface EmbeddingResponse {
  readonly data: readonly { readonly index: number; readonly embedding: number[] | string }[];
  readonly usage: {
    readonly prompt_tokens: number;
    readonly cost_request: number;
    readonly free_request: boolean;
  };
  readonly error?: { readonly code: string };
}

interface EmbeddingResult {
  readonly status: number;
  readonly body: EmbeddingResponse;
  readonly requestId: string;
}

async function embed(
  account: TestAccount,
  model: string,
  input: string | readonly string[],
  more: object = {},
): Promise<EmbeddingResult> {
  const response = await stack.post('/v1/embeddings', account.apiKey, { model, input, ...more });
  const body = (await response.json()) as EmbeddingResponse;
  return { status: response.status, body, requestId: response.headers.get('x-request-id')! };
}

const inputsSentTo = (model: string): string[] =>
  vendor.requests.entries
    .filter((entry) => entry.model === `emb-${model}`)
    .flatMap((entry) => entry.body!['input'] as string[]);

const readUse = (model: string): Promise<CacheUse> => new CacheUseStore(stack.redis).read(model);

/** The cache is written in the background, so tests have to wait for it. */
async function waitForEntries(model: string, entries: number): Promise<void> {
  await waitFor(`${entries} cached vectors of ${model}`, async () => {
    return (await readUse(model)).entries === entries;
  });
}

function readBytes(embedding: number[] | string): Buffer {
  return typeof embedding === 'string'
    ? Buffer.from(embedding, 'base64')
    : Buffer.from(Float32Array.from(embedding).buffer);
}

function assertVectorsOf(
  t: ExecutionContext,
  { status, body }: EmbeddingResult,
  texts: readonly string[],
): void {
  t.is(status, 200, JSON.stringify(body).slice(0, 300));
  t.is(body.data.length, texts.length);
  for (const [i, { index, embedding }] of body.data.entries()) {
    t.is(index, i);
    const bytes = readBytes(embedding);
    t.true(bytes.equals(Buffer.from(deriveVector(texts[i]!, bytes.length / 4).buffer)), texts[i]);
  }
}

test('cached texts are not sent to the vendor again, and are billed and logged like uncached ones', async (t) => {
  const account = await stack.createAccount();
  const texts = ['a cat', 'on the mat', 'a cat'];
  const first = await embed(account, 'twice', texts);
  await waitForEntries('twice', 2);
  const second = await embed(account, 'twice', texts);
  for (const result of [first, second]) assertVectorsOf(t, result, texts);
  t.deepEqual(inputsSentTo('twice').sort(), ['a cat', 'on the mat']);
  t.deepEqual(second.body.usage.prompt_tokens, first.body.usage.prompt_tokens);
  t.is(second.body.usage.cost_request, first.body.usage.cost_request);
  t.is(toNano(second.body.usage.cost_request), 7n * 7_770n);
  t.is(await readAmountCharged(stack, account.id, '100'), 2n * 7n * 7_770n);
  const rows = await Promise.all([first, second].map((one) => findRow(stack, one.requestId)));
  for (const row of rows) {
    t.like(row, { success: true, responseCode: 200, promptTokens: 7, counted: false, costNano: 54_390n });
  }
  t.is(rows[1]!.billedMs, 0);
  await waitForNoReservation(stack, account.id);
});

test('if some inputs of a request are cached, only the others reach the vendor, and the order is preserved', async (t) => {
  const account = await stack.createAccount();
  await embed(account, 'partly', ['b', 'd']);
  await waitForEntries('partly', 2);
  const texts = ['a', 'b', 'c', 'd', 'a'];
  const result = await embed(account, 'partly', texts);
  assertVectorsOf(t, result, texts);
  t.is(result.body.usage.prompt_tokens, 5);
  t.deepEqual(inputsSentTo('partly').sort(), ['a', 'b', 'c', 'd']);
});

test('one account’s cached vectors are never returned to another', async (t) => {
  const [ann, bob] = await Promise.all([stack.createAccount(), stack.createAccount()]);
  await embed(ann, 'accounts', 'secret plan');
  await waitForEntries('accounts', 1);
  assertVectorsOf(t, await embed(bob, 'accounts', 'secret plan'), ['secret plan']);
  t.deepEqual(inputsSentTo('accounts'), ['secret plan', 'secret plan']);
  await waitForEntries('accounts', 2);
  for (const account of [ann, bob]) await embed(account, 'accounts', 'secret plan');
  t.is(inputsSentTo('accounts').length, 2);
});

test('vectors are cached separately for each number of dimensions', async (t) => {
  const account = await stack.createAccount();
  const lengths = [undefined, 8, 16];
  for (const dimensions of lengths) await embed(account, 'lengths', 'same', { dimensions });
  await waitForEntries('lengths', 3);
  for (const dimensions of lengths) {
    const result = await embed(account, 'lengths', 'same', { dimensions });
    assertVectorsOf(t, result, ['same']);
    t.is(readBytes(result.body.data[0]!.embedding).length, 4 * (dimensions ?? 1536));
  }
  t.is(inputsSentTo('lengths').length, 3);
  // A request for the model's default dimensions uses the same cache entry as a request without dimensions.
  assertVectorsOf(t, await embed(account, 'lengths', 'same', { dimensions: 1536 }), ['same']);
  t.is(inputsSentTo('lengths').length, 3);
});

test('base64 and floats are bit-identical, cached or not', async (t) => {
  const account = await stack.createAccount();
  const embedAs = async (encoding_format: string): Promise<Buffer> => {
    const { body } = await embed(account, 'forms', 'one text', { encoding_format });
    return readBytes(body.data[0]!.embedding);
  };
  const result = await embedAs('float');
  await waitForEntries('forms', 1);
  for (const format of ['base64', 'float']) t.true((await embedAs(format)).equals(result), format);
  t.is(inputsSentTo('forms').length, 1);
});

test('a model without a cache is called each time, and nothing is cached', async (t) => {
  const account = await stack.createAccount();
  for (let i = 0; i < 3; i++) assertVectorsOf(t, await embed(account, 'uncached', 'same'), ['same']);
  t.is(inputsSentTo('uncached').length, 3);
  t.deepEqual(await findKeys(stack.redis, 'mg:{vectors:uncached}:*'), []);
});

test('if the gateway counted the tokens of a text, the log row says so even when the count comes from the cache', async (t) => {
  const account = await stack.createAccount();
  await embed(account, 'counted+nousage', 'cat cat cat');
  await waitForEntries('counted+nousage', 1);
  const result = await embed(account, 'counted+nousage', 'cat cat cat');
  t.is(result.body.usage.prompt_tokens, 3);
  t.true((await findRow(stack, result.requestId)).counted);
  t.is(inputsSentTo('counted+nousage').length, 1);
});

test('the cached token count of a text does not include tokens that the vendor counted for another text in the same call', async (t) => {
  const account = await stack.createAccount();
  const [dear, plain] = ['dear', 'word'].map((word) => Array<string>(100).fill(word).join(' ')) as [
    string,
    string,
  ];
  const first = await embed(account, 'foreign+dear-50', [dear, plain]);
  t.is(
    first.body.usage.prompt_tokens,
    5_100,
    'the request that caused the vendor call pays for all tokens that the vendor counted',
  );
  await waitForEntries('foreign+dear-50', 2);
  for (const text of [plain, dear]) {
    const result = await embed(account, 'foreign+dear-50', text);
    const ownTokens = countTokens(text);
    t.is(result.body.usage.prompt_tokens, ownTokens);
    const costNano = BigInt(ownTokens) * 7_770n;
    t.like(await findRow(stack, result.requestId), { promptTokens: ownTokens, counted: true, costNano });
  }
  t.deepEqual(inputsSentTo('foreign+dear-50').sort(), [dear, plain]);
});

test('a text sent alone in a vendor call is cached with the vendor’s token count', async (t) => {
  const account = await stack.createAccount();
  for (let i = 0; i < 2; i++) {
    const result = await embed(account, 'single+dear-50', 'dear cat');
    t.is(result.body.usage.prompt_tokens, 100);
    t.false((await findRow(stack, result.requestId)).counted);
    await waitForEntries('single+dear-50', 1);
  }
  t.is(inputsSentTo('single+dear-50').length, 1);
});

test('a cache hit costs the price per character, but not the price per second', async (t) => {
  const account = await stack.createAccount();
  await embed(account, 'by-character', '12345');
  await embed(account, 'by-time+slow-50', 'cat');
  await Promise.all([waitForEntries('by-character', 1), waitForEntries('by-time+slow-50', 1)]);
  const before = await readAmountCharged(stack, account.id, '100');
  const result = await embed(account, 'by-character', '12345');
  t.is(toNano(result.body.usage.cost_request), 16_650n);
  const timed = await embed(account, 'by-time+slow-50', 'cat');
  t.is(timed.body.usage.cost_request, 0);
  t.is((await readAmountCharged(stack, account.id, '100')) - before, 16_650n);
  t.like(await findRow(stack, timed.requestId), { success: true, billedMs: 0, costNano: 0n });
});

test('a cache hit also uses up a free request', async (t) => {
  const account = await stack.createAccount({ freeRequests: 2 });
  await embed(account, 'free', 'cat');
  await waitForEntries('free', 1);
  const result = [await embed(account, 'free', 'cat'), await embed(account, 'free', 'cat')];
  t.deepEqual(
    result.map((one) => one.body.usage.free_request),
    [true, false],
  );
  t.is(await readAmountCharged(stack, account.id, '100'), 7_770n);
});

test('concurrent requests for cached vectors each get a response and are each charged', async (t) => {
  const account = await stack.createAccount();
  const texts = Array.from({ length: 20 }, (_, i) => `text ${i}`);
  await embed(account, 'again', texts);
  await waitForEntries('again', 20);
  const answers = await Promise.all(
    Array.from({ length: 40 }, (_, i) => embed(account, 'again', texts[i % 20]!)),
  );
  for (const [i, result] of answers.entries()) assertVectorsOf(t, result, [texts[i % 20]!]);
  t.is(inputsSentTo('again').length, 20);
  t.is(await readAmountCharged(stack, account.id, '100'), (40n + 80n) * 7_770n);
});

test('if a vendor returns vectors of different lengths, the request fails, and nothing is cached or charged', async (t) => {
  const account = await stack.createAccount();
  t.is((await embed(account, 'fickle', 'long')).status, 200);
  await waitForEntries('fickle', 1);
  const mixed = await embed(account, 'fickle', ['long', 'short']);
  t.is(mixed.status, 502);
  t.is(mixed.body.error?.code, 'upstream_error');
  t.is(await readAmountCharged(stack, account.id, '100'), 7_770n);
  t.is((await readUse('fickle')).entries, 1);
});

test('admin model list shows the usage of each cache', async (t) => {
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

test('changing the vendor model of a route invalidates its cache', async (t) => {
  const account = await stack.createAccount();
  await embed(account, 'rerouted', 'same');
  await waitForEntries('rerouted', 1);
  const path = stack.config.catalogPath;
  const text = (await readFile(path, 'utf8')).replace('"emb-rerouted"', '"emb-rerouted-v2"');
  await writeFile(join(stack.dir, 'next.yaml'), text);
  await rename(join(stack.dir, 'next.yaml'), path);
  await waitFor('the new vendor model to be called', async () => {
    assertVectorsOf(t, await embed(account, 'rerouted', 'same'), ['same']);
    return inputsSentTo('rerouted-v2').length === 1;
  });
  t.is(inputsSentTo('rerouted').length, 1);
});
