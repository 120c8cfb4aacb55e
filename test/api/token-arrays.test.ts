import test from 'ava';
import { encode } from 'gpt-tokenizer/encoding/cl100k_base';
import { countWords } from '../../scripts/vendor-simulator/count-words.ts';
import type { VendorSimulator } from '../../scripts/vendor-simulator/simulator.ts';
import { countTokens } from '../../shared/catalog/count-tokens.ts';
import {
  findRow,
  readAmountCharged,
  toNano,
  waitForQueuedInputs,
  waitForNoReservation,
} from '../support/observe.ts';
import type { TestAccount, TestStack } from '../support/stack.ts';
import { useVendorStack } from '../support/vendor-stack.ts';
import { waitFor } from '../support/wait-for.ts';

/**
 * Inputs sent as token IDs, as LangChain does. The api process decodes them to text, and the number of token IDs is the
 * gateway's token count.
 */

const catalogOf = (vendorUrl: string): string => {
  const model = (id: string, vendorModel: string, more = '', upstream = 'vendor'): string =>
    `  - { id: ${id}, type: embedding, context: 8192, dimensions: { default: 1536, adjustable: true }, ${more}pricing: { in_cost_per_million: 1000 }, routes: [{ upstream: ${upstream}, model: "${vendorModel}" }] }`;
  return `
upstreams:
  vendor: { kind: openai, baseUrl: "${vendorUrl}/v1" }
  single: { kind: openai, baseUrl: "${vendorUrl}/v1", maxConcurrency: 1 }
models:
${['ordered', 'charged', 'cut'].map((id) => model(id, `emb-${id}`)).join('\n')}
${model('merged', 'emb-merged', 'tokenizer: cl100k_base, special_tokens: 0, ', 'single')}
${model('unreported', 'emb-unreported+nousage', 'tokenizer: cl100k_base, special_tokens: 0, ')}
${model('unreported-other', 'emb-other+nousage', 'tokenizer: r50k_base, special_tokens: 0, ')}
`;
};

let stack: TestStack;
let vendor: VendorSimulator;

useVendorStack(test, catalogOf, (started) => {
  ({ stack, vendor } = started);
});

interface EmbeddingResponse {
  readonly data: readonly { index: number; embedding: number[] }[];
  readonly usage: { prompt_tokens: number; cost_request: number };
}

async function embed(
  { apiKey }: TestAccount,
  model: string,
  input: unknown,
): Promise<{ status: number; requestId: string; body: EmbeddingResponse }> {
  const response = await stack.post('/v1/embeddings', apiKey, { model, input, dimensions: 8 });
  const requestId = response.headers.get('x-request-id')!;
  return { status: response.status, requestId, body: (await response.json()) as EmbeddingResponse };
}

const textsSent = (vendorModel: string): string[] =>
  vendor.requests.entries
    .filter((entry) => entry.model === vendorModel)
    .flatMap((entry) => (entry.body as { input: string[] }).input);

test('token IDs get the vectors of the texts that they encode, in order', async (t) => {
  const account = await stack.createAccount();
  const texts = ['Hello world', 'Привет, мир', '你好，世界 🚢', '\ufeff<|endoftext|>'];
  const asTokens = texts.map((text) => encode(text, { disallowedSpecial: new Set() }));
  const [plain, several, one] = [
    await embed(account, 'ordered', texts),
    await embed(account, 'ordered', asTokens),
    await embed(account, 'ordered', asTokens[0]),
  ];
  for (const { status } of [plain, several, one]) t.is(status, 200);
  t.deepEqual(several.body.data, plain.body.data);
  t.deepEqual(one.body.data, plain.body.data.slice(0, 1));
  t.deepEqual(textsSent('emb-ordered'), [...texts, ...texts, texts[0]!]);
});

test.serial('inputs sent as token IDs share vendor calls and results with those sent as text', async (t) => {
  const [ann, bob] = [await stack.createAccount(), await stack.createAccount()];
  const vendorHold = vendor.hold('emb-merged');
  const first = embed(ann, 'merged', 'cat dog');
  await waitFor('the first call', () => vendorHold.waiting === 1);
  const others = [
    embed(ann, 'merged', [encode('cat dog'), encode('fish bird')]),
    embed(bob, 'merged', 'river stone'),
    embed(bob, 'merged', encode('cloud rain')),
  ];
  await waitForQueuedInputs(stack, 3);
  vendorHold.end();
  const [alone, ...results] = await Promise.all([first, ...others]);
  for (const { status, body } of [alone, ...results]) {
    t.is(status, 200);
    for (const { embedding } of body.data) t.is(embedding.length, 8);
  }
  t.deepEqual(results[0]!.body.data[0]!.embedding, alone.body.data[0]!.embedding);
  t.is(vendor.requests.entries.filter((entry) => entry.model === 'emb-merged').length, 2);
  t.deepEqual(textsSent('emb-merged').toSorted(), ['cat dog', 'cloud rain', 'fish bird', 'river stone']);
  t.deepEqual(
    results.map(({ body }) => body.usage.prompt_tokens),
    [4, 2, 2],
  );
});

test('token IDs are billed from the vendor’s count for their text, or, if the vendor reports no usage, as one token each', async (t) => {
  const account = await stack.createAccount();
  const text = 'The cat sat on the mat.';
  const reported = await embed(account, 'charged', encode(text));
  t.is(reported.body.usage.prompt_tokens, countWords(text));
  // One token per character: another encoding of the same text.
  const characterTokens = ['c', 'a', 't'].flatMap((character) => encode(character));
  const unreported = await embed(account, 'unreported', [encode(text), characterTokens]);
  t.is(unreported.body.usage.prompt_tokens, encode(text).length + 3);
  t.like(await findRow(stack, unreported.requestId), {
    promptTokens: encode(text).length + 3,
    counted: true,
  });
  const costs = [reported, unreported].map(({ body }) => toNano(body.usage.cost_request));
  await waitForNoReservation(stack, account.id);
  t.is(await readAmountCharged(stack, account.id, '100'), costs[0]! + costs[1]!);
});

test('if the vendor reports no usage, at least as many tokens are billed as the text has in its model’s vocabulary', async (t) => {
  const account = await stack.createAccount();
  const text = 'Съешь же ещё этих мягких французских булок';
  const tokens = encode(text);
  const ownTokens = countTokens(text, 'r50k_base');
  t.true(ownTokens > tokens.length);
  const { body } = await embed(account, 'unreported-other', [tokens]);
  t.is(body.usage.prompt_tokens, ownTokens);
});

test('a character split between two inputs becomes U+FFFD in both', async (t) => {
  const account = await stack.createAccount();
  const tokens = encode('🦜');
  t.true(tokens.length > 1);
  const { status } = await embed(account, 'cut', [tokens.slice(0, 1), tokens.slice(1)]);
  t.is(status, 200);
  for (const text of textsSent('emb-cut')) t.regex(text, /^\ufffd+$/);
});

test('a body may contain more token IDs than other values, but the text that they encode may not exceed the body limit', async (t) => {
  const account = await stack.createAccount({ balance: '1000' });
  const row = Array.from({ length: 8_000 }, () => encode(' cat')[0]!);
  const large = await embed(
    account,
    'unreported',
    Array.from({ length: 50 }, () => row),
  );
  t.is(large.status, 200);
  t.is(large.body.usage.prompt_tokens, 400_000);
  // 128 spaces are one token, and 8192 of those tokens are a megabyte.
  const [spaces] = encode(' '.repeat(128));
  const inflating = Array.from({ length: 100 }, () => Array.from({ length: 8_192 }, () => spaces!));
  const response = await stack.post('/v1/embeddings', account.apiKey, {
    model: 'unreported',
    input: inflating,
  });
  t.is(response.status, 413);
  t.regex(await response.text(), /The text decoded from the token IDs is larger than 80 MB/);
});
