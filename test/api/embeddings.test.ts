import test, { type ExecutionContext } from 'ava';
import { Agent, request } from 'undici';
import type { LoggedRequest } from '../../scripts/vendor-simulator/request-log.ts';
import type { VendorSimulator } from '../../scripts/vendor-simulator/simulator.ts';
import { deriveVector } from '../../scripts/vendor-simulator/vectors.ts';
import type { RequestLogDocument } from '../../shared/ledger/ledger-store.ts';
import { countTokens } from '../../shared/catalog/count-tokens.ts';
import { findRow, readAmountCharged, toNano, waitForNoReservation } from '../support/observe.ts';
import type { TestAccount, TestStack } from '../support/stack.ts';
import { waitFor } from '../support/wait-for.ts';
import { useVendorStack } from '../support/vendor-stack.ts';

/** Embeddings through HTTP: requests merged into one vendor call must not affect each other. */

const vectorModel = (id: string, vendorModel: string, pricing: string, upstream = 'vendor'): string =>
  `  - { id: ${id}, type: embedding, context: 8192, dimensions: { default: 1536, adjustable: true }, pricing: ${pricing}, routes: [{ upstream: ${upstream}, model: "${vendorModel}" }] }`;

const catalogOf = (vendorUrl: string): string => `
upstreams:
  vendor: { kind: openai, baseUrl: "${vendorUrl}/v1", apiKeys: [sk-vendor-key-0123456789] }
  narrow: { kind: openai, baseUrl: "${vendorUrl}/v1", apiKeys: [sk-vendor-key-0123456789], maxBatchInputs: 3 }
  hasty: { kind: openai, baseUrl: "${vendorUrl}/v1", apiKeys: [sk-vendor-key-0123456789], timeoutMs: 300 }
models:
${vectorModel('plain', 'emb-sim', '{ in_cost_per_million: 7.77 }')}
${['fields', 'long', 'large', 'twice'].map((id) => vectorModel(id, `emb-${id}`, '{ in_cost_per_million: 7.77 }')).join('\n')}
${vectorModel('narrow-users', 'emb-narrow-users', '{ in_cost_per_million: 7.77 }', 'narrow')}
${vectorModel('burst', 'emb-burst+slow-50', '{ in_cost_per_million: 7.77 }')}
${vectorModel('merged', 'emb-merged+slow-50', '{ in_cost_per_million: 7.77 }')}
${vectorModel('poisoned', 'emb-poisoned+poison', '{ in_cost_per_million: 7.77 }')}
${vectorModel('overflowing-numbers', 'emb-numbers+overflow+floats', '{ in_cost_per_million: 7.77 }')}
${vectorModel('numbers', 'emb-numbers+floats', '{ in_cost_per_million: 7.77 }')}
${vectorModel('unreported', 'emb-unreported+nousage', '{ in_cost_per_million: 7.77 }')}
${vectorModel('with-special-tokens', 'emb-marking+special-2', '{ in_cost_per_million: 7.77 }')}
${vectorModel('by-character', 'emb-characters', '{ type: characters, cost_per_million: 3.33 }')}
${vectorModel('by-letter', 'emb-letters+dear-5', '{ in_cost_per_million: 1000 }')}
${vectorModel('by-request', 'emb-request', '{ type: request, cost_per_request: 0.5 }')}
${vectorModel('by-time', 'emb-time+slow-200', '{ type: time, cost_per_second: 0.01 }')}
${vectorModel('free', 'emb-free', '{ in_cost_per_million: 7.77, free_requests: true }')}
${vectorModel('failing', 'emb-failing+fail-500', '{ in_cost_per_million: 7.77 }')}
${vectorModel('late', 'emb-late+slow-3000', '{ in_cost_per_million: 7.77 }', 'hasty')}
${vectorModel('slow', 'emb-slow+slow-4000', '{ in_cost_per_million: 7.77 }')}
${vectorModel('cut', 'emb-cut+cutbytes-100', '{ in_cost_per_million: 7.77 }')}
${vectorModel('narrow', 'emb-narrow', '{ in_cost_per_million: 7.77 }', 'narrow')}
`;

let stack: TestStack;
let vendor: VendorSimulator;

useVendorStack(test, catalogOf, (started) => {
  ({ stack, vendor } = started);
});

interface EmbeddingResponse {
  readonly id: string;
  readonly created: number;
  readonly object: string;
  readonly model: string;
  readonly data: readonly { object: string; index: number; embedding: number[] | string }[];
  readonly usage: {
    readonly prompt_tokens: number;
    readonly total_tokens: number;
    readonly total_time: number;
    readonly cost_request: number;
    readonly free_request: boolean;
  };
  readonly error: { readonly code: string; readonly message: string };
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

const findRequestsTo = (vendorModel: string): readonly LoggedRequest[] =>
  vendor.requests.entries.filter((entry) => entry.model === vendorModel);

/** Decodes either format to Float32. */
function readVector(embedding: number[] | string): Float32Array {
  if (typeof embedding !== 'string') return Float32Array.from(embedding);
  const bytes = Buffer.from(embedding, 'base64');
  return Float32Array.from({ length: bytes.length / 4 }, (_, i) => bytes.readFloatLE(i * 4));
}

function assertVectorsOf(
  t: ExecutionContext,
  { status, body }: EmbeddingResult,
  texts: readonly string[],
): void {
  t.is(status, 200, JSON.stringify(body).slice(0, 300));
  t.deepEqual(
    body.data.map((item) => item.index),
    texts.map((_, i) => i),
  );
  t.true(
    body.data.every((item, i) => {
      const vector = readVector(item.embedding);
      return Buffer.from(vector.buffer).equals(Buffer.from(deriveVector(texts[i]!, vector.length).buffer));
    }),
    'each vector belongs to its text',
  );
}

test('a response has the fields of the specification, and floats by default', async (t) => {
  const account = await stack.createAccount();
  const result = await embed(account, 'fields', 'two words');
  assertVectorsOf(t, result, ['two words']);
  const { body, requestId } = result;
  t.deepEqual(Object.keys(body).sort(), ['created', 'data', 'id', 'model', 'object', 'usage']);
  t.is(body.id, requestId);
  t.is(body.object, 'list');
  t.is(body.model, 'fields');
  t.true(Math.abs(body.created - Date.now() / 1_000) < 5);
  t.deepEqual(Object.keys(body.data[0]!).sort(), ['embedding', 'index', 'object']);
  t.is(body.data[0]?.object, 'embedding');
  t.true(Array.isArray(body.data[0]?.embedding));
  t.deepEqual(Object.keys(body.usage).sort(), [
    'cost_request',
    'free_request',
    'prompt_tokens',
    'total_time',
    'total_tokens',
  ]);
  t.like(body.usage, {
    prompt_tokens: 2,
    total_tokens: 2,
    cost_request: 0.00001554,
    free_request: false,
  });
  t.is(await readAmountCharged(stack, account.id, '100'), 15_540n);
  t.like(await findRow(stack, requestId), {
    success: true,
    responseCode: 200,
    model: 'fields',
    promptTokens: 2,
    completionTokens: 0,
    costNano: 15_540n,
    counted: false,
  });
});

test('base64 and floats are bit-identical', async (t) => {
  const account = await stack.createAccount();
  const floats = await embed(account, 'plain', ['a b', 'c']);
  const base64 = await embed(account, 'plain', ['a b', 'c'], { encoding_format: 'base64' });
  t.is(typeof base64.body.data[0]?.embedding, 'string');
  assertVectorsOf(t, floats, ['a b', 'c']);
  assertVectorsOf(t, base64, ['a b', 'c']);
});

test('a vendor that returns floats instead of base64 is supported', async (t) => {
  const account = await stack.createAccount();
  assertVectorsOf(t, await embed(account, 'numbers', ['a b', 'c']), ['a b', 'c']);
});

test('an explicit float format, nulls and a list with a single text work', async (t) => {
  const account = await stack.createAccount();
  assertVectorsOf(t, await embed(account, 'plain', ['x y'], { encoding_format: 'float' }), ['x y']);
  const nulls = { encoding_format: null, dimensions: null, user: null };
  assertVectorsOf(t, await embed(account, 'plain', ['x y'], nulls), ['x y']);
});

test('dimensions are passed on, and concurrent calls with other dimensions do not interfere', async (t) => {
  const account = await stack.createAccount();
  const lengths = [8, 16, 8, 1536, 16, 8];
  const results = await Promise.all(
    lengths.map((dimensions, i) => embed(account, 'plain', `text ${i}`, { dimensions })),
  );
  for (const [i, result] of results.entries()) {
    assertVectorsOf(t, result, [`text ${i}`]);
    t.is(readVector(result.body.data[0]!.embedding).length, lengths[i]!);
  }
});

/** Words of one token each for us and for the vendor, so that each request is billed exactly. */
const wordsOf = (count: number): string => Array.from({ length: count }, () => 'cat').join(' ');

// Serial, because callers, api, worker and vendor share the process: other tests would delay some requests, and fewer
// would be merged.
test.serial(
  'a hundred concurrent single-input requests take few vendor calls, and each gets its own vector and price',
  async (t) => {
    const accounts = await Promise.all(Array.from({ length: 4 }, () => stack.createAccount()));
    const texts = Array.from({ length: 100 }, (_, i) => wordsOf(1 + i));
    const callers = new Agent({ connections: texts.length, keepAliveTimeout: 60_000 });
    t.teardown(() => callers.close());
    const sendAll = (): Promise<EmbeddingResult[]> =>
      Promise.all(
        texts.map(async (input, i): Promise<EmbeddingResult> => {
          const { statusCode, body, headers } = await request(`${stack.url}/v1/embeddings`, {
            dispatcher: callers,
            method: 'POST',
            headers: {
              'content-type': 'application/json',
              authorization: `Bearer ${accounts[i % 4]!.apiKey}`,
            },
            body: JSON.stringify({ model: 'merged', input, dimensions: 16 }),
          });
          const requestId = String(headers['x-request-id']);
          return { status: statusCode, body: (await body.json()) as EmbeddingResponse, requestId };
        }),
      );
    const countCalls = (): number => findRequestsTo('emb-merged+slow-50').length;

    const first = await sendAll();
    const firstCalls = countCalls();
    const second = await sendAll();
    const calls = findRequestsTo('emb-merged+slow-50').slice(firstCalls);
    t.true(calls.length <= 20, `${calls.length} calls over existing connections`);
    t.is(
      calls.reduce((sum, call) => sum + (call.body!['input'] as unknown[]).length, 0),
      texts.length,
    );
    t.true(calls.every((call) => call.body?.['encoding_format'] === 'base64'));

    for (const results of [first, second]) {
      for (const [i, result] of results.entries()) {
        assertVectorsOf(t, result, [texts[i]!]);
        t.is(result.body.usage.prompt_tokens, i + 1);
        t.is(toNano(result.body.usage.cost_request), BigInt(i + 1) * 7_770n);
      }
    }
    t.is(new Set([...first, ...second].map((one) => one.body.id)).size, 200);
    for (const [a, account] of accounts.entries()) {
      const ownResults = [...first, ...second].filter((_, i) => i % 4 === a);
      const reportedCost = ownResults.reduce((sum, one) => sum + toNano(one.body.usage.cost_request), 0n);
      t.is(await readAmountCharged(stack, account.id, '100'), reportedCost);
    }
  },
);

// Each of the concurrent callers has to open a new connection for its first request.
test.serial('a hundred single-input requests over new connections take few vendor calls too', async (t) => {
  const account = await stack.createAccount();
  const results = await Promise.all(
    Array.from({ length: 100 }, (_, i) => embed(account, 'burst', wordsOf(1 + i), { dimensions: 16 })),
  );
  t.true(results.every((one) => one.status === 200));
  const calls = findRequestsTo('emb-burst+slow-50').length;
  t.true(calls <= 40, `${calls} calls`);
});

test('merged calls do not send the callers’ end users to the vendor', async (t) => {
  const account = await stack.createAccount();
  const users = ['ann', 'bob', 'cy', 'dee'];
  const results = await Promise.all(
    users.map((user) => embed(account, 'narrow-users', `text of ${user}`, { user })),
  );
  t.true(results.every((one) => one.status === 200));
  const merged = findRequestsTo('emb-narrow-users').filter(
    (call) => (call.body!['input'] as unknown[]).length > 1,
  );
  t.true(merged.every((call) => call.body?.['user'] === undefined));
  const row = await findRow(stack, results[1]!.requestId);
  t.is(row.user, 'bob');
});

test('a request over the vendor’s input limit is split, and its response is complete and in order', async (t) => {
  const account = await stack.createAccount();
  const texts = Array.from({ length: 11 }, (_, i) => `split ${i}`);
  const result = await embed(account, 'narrow', texts);
  assertVectorsOf(t, result, texts);
  t.is(result.body.usage.prompt_tokens, 22);
  t.true(findRequestsTo('emb-narrow').every((call) => (call.body!['input'] as unknown[]).length <= 3));
});

test('even if the catalog does not specify special tokens, the reservation covers those that the vendor bills for short inputs', async (t) => {
  const account = await stack.createAccount();
  const letters = Array.from({ length: 26 }, (_, i) => String.fromCharCode(97 + i));
  const result = await embed(account, 'with-special-tokens', letters);
  t.is(result.body.usage.prompt_tokens, 3 * letters.length);
  t.is(await readAmountCharged(stack, account.id, '100'), BigInt(3 * letters.length) * 7_770n);
});

test('an input that the vendor rejects fails only its own request, not the others in the batch', async (t) => {
  const accounts = await Promise.all(Array.from({ length: 20 }, () => stack.createAccount()));
  const texts = accounts.map((_, i) => (i === 7 ? 'some poison here' : wordsOf(i + 1)));
  const results = await Promise.all(texts.map((text, i) => embed(accounts[i]!, 'poisoned', text)));
  for (const [i, result] of results.entries()) {
    if (i === 7) {
      t.is(result.status, 400);
      t.is(result.body.error.code, 'upstream_rejected');
      t.regex(result.body.error.message, /refuses/);
      t.is(await readAmountCharged(stack, accounts[i]!.id, '100'), 0n);
    } else {
      assertVectorsOf(t, result, [texts[i]!]);
      t.is(await readAmountCharged(stack, accounts[i]!.id, '100'), BigInt(i + 1) * 7_770n);
    }
  }
  await waitForNoReservation(stack);
});

test('if a vector is not all finite numbers, its request fails but is still charged for its other inputs', async (t) => {
  const account = await stack.createAccount();
  const result = await embed(account, 'overflowing-numbers', ['fine', 'an overflow']);
  t.is(result.status, 400);
  t.is(result.body.error.code, 'upstream_rejected');
  t.is(
    result.body.error.message,
    'The model returned a vector with non-finite numbers for input.1. (1 of 2 inputs was embedded and charged.)',
  );
  await waitForNoReservation(stack);
  t.is(await readAmountCharged(stack, account.id, '100'), 7_770n);
});

test('2048 inputs with 1536 dimensions are returned in order', async (t) => {
  const account = await stack.createAccount();
  const texts = Array.from({ length: 2048 }, (_, i) => `input ${i}`);
  const result = await embed(account, 'large', texts, { encoding_format: 'base64' });
  assertVectorsOf(t, result, texts);
  t.is(result.body.usage.prompt_tokens, 4096);
  t.is(await readAmountCharged(stack, account.id, '100'), 4096n * 7_770n);
});

test('a response has a content-length unless it is large', async (t) => {
  const account = await stack.createAccount();
  for (const [count, hasLength] of [
    [1, true],
    [100, false],
  ] as const) {
    for (const encoding_format of ['float', 'base64']) {
      const input = Array.from({ length: count }, (_, i) => `length ${i}`);
      const body = { model: 'plain', input, encoding_format };
      const response = await stack.post('/v1/embeddings', account.apiKey, body);
      const { byteLength } = await response.arrayBuffer();
      t.is(response.headers.get('content-type'), 'application/json; charset=utf-8');
      t.is(response.headers.get('content-length'), hasLength ? String(byteLength) : null);
    }
  }
});

test('a large response with floats is as well-formed as a small one', async (t) => {
  const account = await stack.createAccount();
  const texts = Array.from({ length: 200 }, (_, i) => `float ${i}`);
  assertVectorsOf(t, await embed(account, 'plain', texts), texts);
});

test('the same text twice gives two vectors and is charged twice', async (t) => {
  const account = await stack.createAccount();
  const result = await embed(account, 'twice', ['same', 'same']);
  assertVectorsOf(t, result, ['same', 'same']);
  t.is(result.body.usage.prompt_tokens, 2);
});

test('an input of exactly 8192 tokens is accepted', async (t) => {
  const account = await stack.createAccount();
  const result = await embed(account, 'long', wordsOf(8192));
  t.is(result.status, 200);
  t.is(result.body.usage.prompt_tokens, 8192);
});

test('if the vendor reports no tokens, the gateway counts them itself', async (t) => {
  const account = await stack.createAccount();
  const { body, requestId } = await embed(account, 'unreported', ['cat cat cat', 'dog']);
  t.is(body.usage.prompt_tokens, 4);
  t.is(await readAmountCharged(stack, account.id, '100'), 4n * 7_770n);
  t.true((await findRow(stack, requestId)).counted);
});

test('prices per character and per request are charged as configured', async (t) => {
  const byCharacter = await stack.createAccount();
  const result = await embed(byCharacter, 'by-character', ['12345', 'äöü']);
  t.is(toNano(result.body.usage.cost_request), 26_640n);
  t.is(await readAmountCharged(stack, byCharacter.id, '100'), 26_640n);
  t.is((await findRow(stack, result.requestId)).characters, 8);
  const byRequest = await stack.createAccount();
  t.is((await embed(byRequest, 'by-request', ['a', 'b', 'c'])).body.usage.cost_request, 0.5);
});

test.serial(
  'a vocabulary that takes a token for each letter of Russian is charged as the vendor counts',
  async (t) => {
    const account = await stack.createAccount();
    // 31 words, which take fewer than half as many tokens in our vocabulary as the vendor counts.
    const text = `dear ${Array(30).fill('слово').join(' ')}`;
    const { body } = await embed(account, 'by-letter', text);
    const counted = 31 * 5;
    t.true(countTokens(text) * 2 < counted, 'more than twice our own count');
    t.is(body.usage.prompt_tokens, counted);
    t.is(await readAmountCharged(stack, account.id, '100'), BigInt(counted) * 1_000_000n);
  },
);

test.serial('the seconds of a merged call are split among its callers', async (t) => {
  const account = await stack.createAccount();
  const startedAtMs = performance.now();
  const results = await Promise.all(Array.from({ length: 20 }, () => embed(account, 'by-time', 'cat')));
  const tookMs = performance.now() - startedAtMs;
  t.true(results.every((one) => one.status === 200));
  const calls = findRequestsTo('emb-time+slow-200').length;
  const rows = await Promise.all(results.map((one) => findRow(stack, one.requestId)));
  const billedMs = rows.reduce((sum, row) => sum + row.billedMs, 0);
  const all = `${billedMs} ms for ${calls} calls of 200 ms, within ${tookMs} ms`;
  t.true(billedMs >= calls * 190 && billedMs <= calls * tookMs, all);
  t.is(await readAmountCharged(stack, account.id, '100'), BigInt(billedMs) * 10_000n);
  const reportedCost = results.reduce((sum, one) => sum + toNano(one.body.usage.cost_request), 0n);
  t.is(await readAmountCharged(stack, account.id, '100'), reportedCost);
});

test('each request uses one free request, merged or not', async (t) => {
  const account = await stack.createAccount({ freeRequests: 5 });
  const results = await Promise.all(Array.from({ length: 8 }, () => embed(account, 'free', 'cat')));
  t.is(results.filter((one) => one.body.usage.free_request).length, 5);
  t.is(await readAmountCharged(stack, account.id, '100'), 3n * 7_770n);
});

test('a balance that does not cover the inputs is a 402, and other requests in the batch succeed', async (t) => {
  const rich = await stack.createAccount();
  const lowBalance = await stack.createAccount({ balance: '0.000007' });
  const results = await Promise.all([
    embed(rich, 'plain', 'cat'),
    embed(lowBalance, 'plain', 'cat'),
    embed(rich, 'plain', 'dog'),
  ]);
  t.deepEqual(
    results.map((one) => one.status),
    [200, 402, 200],
  );
});

for (const [model, status, code] of [
  ['failing', 502, 'upstream_error'],
  ['cut', 502, 'upstream_error'],
  ['late', 504, 'upstream_timeout'],
] as const) {
  test(`if the vendor call ends with ${code} (model "${model}"), every caller in the batch gets ${status} and is not charged`, async (t) => {
    const account = await stack.createAccount();
    const results = await Promise.all([1, 2, 3].map((i) => embed(account, model, `text ${i}`)));
    for (const { status: actualStatus, body, requestId } of results) {
      t.is(actualStatus, status);
      t.is(body.error.code, code);
      t.like(await findRow(stack, requestId), { success: false, responseCode: status, costNano: 0n });
    }
    t.is(await readAmountCharged(stack, account.id, '100'), 0n);
    await waitForNoReservation(stack, account.id);
  });
}

test('if the caller disconnects during the vendor call, the call still completes and is charged in full', async (t) => {
  const account = await stack.createAccount();
  const client = new AbortController();
  const responsePromise = fetch(`${stack.url}/v1/embeddings`, {
    method: 'POST',
    signal: client.signal,
    headers: { 'content-type': 'application/json', authorization: `Bearer ${account.apiKey}` },
    body: JSON.stringify({ model: 'slow', input: ['cat', 'cat cat'] }),
  });
  const isOurRequest = (one: LoggedRequest): boolean => one.model === 'emb-slow+slow-4000';
  await vendor.requests.waitFor(isOurRequest);
  client.abort();
  await t.throwsAsync(responsePromise, { any: true });
  const call = await vendor.requests.waitFor((one) => isOurRequest(one) && one.isOver);
  t.false(call.isAborted);
  await waitForNoReservation(stack, account.id);
  t.is(await readAmountCharged(stack, account.id, '100'), 3n * 7_770n);
  const rows = stack.mongo.db.collection<RequestLogDocument>('request_logs');
  const row = await waitFor('the log row', () => rows.findOne({ accountId: account.id }));
  t.like(row, {
    success: false,
    responseCode: 499,
    errorCode: 'job_cancelled',
    promptTokens: 3,
    counted: false,
    costNano: 3n * 7_770n,
  });
});
