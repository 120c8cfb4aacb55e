import test, { type ExecutionContext } from 'ava';
import { Agent, request } from 'undici';
import type { LoggedRequest } from '../../scripts/vendor-simulator/request-log.ts';
import type { VendorSimulator } from '../../scripts/vendor-simulator/simulator.ts';
import { deriveVector } from '../../scripts/vendor-simulator/vectors.ts';
import type { RequestLogDocument } from '../../shared/ledger/ledger-store.ts';
import { findRow, readLoss, toNano, waitForNoReservation } from '../support/observe.ts';
import type { TestAccount, TestStack } from '../support/stack.ts';
import { waitFor } from '../support/wait-for.ts';
import { useVendorStack } from '../support/vendor-stack.ts';

/** Embeddings through HTTP: single calls that travel together must not notice each other. */

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
${vectorModel('marking', 'emb-marking+special-2', '{ in_cost_per_million: 7.77 }')}
${vectorModel('by-character', 'emb-characters', '{ type: characters, cost_per_million: 3.33 }')}
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

interface Answer {
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

const sentTo = (vendorModel: string): readonly LoggedRequest[] =>
  vendor.requests.entries.filter((entry) => entry.model === vendorModel);

/** Float32 of either form. */
function readVector(embedding: number[] | string): Float32Array {
  if (typeof embedding !== 'string') return Float32Array.from(embedding);
  const bytes = Buffer.from(embedding, 'base64');
  return Float32Array.from({ length: bytes.length / 4 }, (_, i) => bytes.readFloatLE(i * 4));
}

function isVectorOf(t: ExecutionContext, { status, answer }: Asked, texts: readonly string[]): void {
  t.is(status, 200, JSON.stringify(answer).slice(0, 300));
  t.deepEqual(
    answer.data.map((item) => item.index),
    texts.map((_, i) => i),
  );
  t.true(
    answer.data.every((item, i) => {
      const vector = readVector(item.embedding);
      return Buffer.from(vector.buffer).equals(Buffer.from(deriveVector(texts[i]!, vector.length).buffer));
    }),
    'each vector belongs to its text',
  );
}

test('an answer has the fields of the specification, and floats unless asked otherwise', async (t) => {
  const account = await stack.createAccount();
  const asked = await embed(account, 'fields', 'two words');
  isVectorOf(t, asked, ['two words']);
  const { answer, requestId } = asked;
  t.deepEqual(Object.keys(answer).sort(), ['created', 'data', 'id', 'model', 'object', 'usage']);
  t.is(answer.id, requestId);
  t.is(answer.object, 'list');
  t.is(answer.model, 'fields');
  t.true(Math.abs(answer.created - Date.now() / 1_000) < 5);
  t.deepEqual(Object.keys(answer.data[0]!).sort(), ['embedding', 'index', 'object']);
  t.is(answer.data[0]?.object, 'embedding');
  t.true(Array.isArray(answer.data[0]?.embedding));
  t.deepEqual(Object.keys(answer.usage).sort(), [
    'cost_request',
    'free_request',
    'prompt_tokens',
    'total_time',
    'total_tokens',
  ]);
  t.like(answer.usage, {
    prompt_tokens: 2,
    total_tokens: 2,
    cost_request: 0.00001554,
    free_request: false,
  });
  t.is(await readLoss(stack, account.id, '100'), 15_540n);
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

test('base64 is the same vector as floats, to the bit', async (t) => {
  const account = await stack.createAccount();
  const floats = await embed(account, 'plain', ['a b', 'c']);
  const base64 = await embed(account, 'plain', ['a b', 'c'], { encoding_format: 'base64' });
  t.is(typeof base64.answer.data[0]?.embedding, 'string');
  isVectorOf(t, floats, ['a b', 'c']);
  isVectorOf(t, base64, ['a b', 'c']);
});

test('a vendor that answers numbers where base64 was asked does as well', async (t) => {
  const account = await stack.createAccount();
  isVectorOf(t, await embed(account, 'numbers', ['a b', 'c']), ['a b', 'c']);
});

test('an explicit float, null and a single text in a list do as expected', async (t) => {
  const account = await stack.createAccount();
  isVectorOf(t, await embed(account, 'plain', ['x y'], { encoding_format: 'float' }), ['x y']);
  const nulls = { encoding_format: null, dimensions: null, user: null };
  isVectorOf(t, await embed(account, 'plain', ['x y'], nulls), ['x y']);
});

test('dimensions are passed on, and calls of other dimensions at the same time keep theirs', async (t) => {
  const account = await stack.createAccount();
  const lengths = [8, 16, 8, 1536, 16, 8];
  const answers = await Promise.all(
    lengths.map((dimensions, i) => embed(account, 'plain', `text ${i}`, { dimensions })),
  );
  for (const [i, asked] of answers.entries()) {
    isVectorOf(t, asked, [`text ${i}`]);
    t.is(readVector(asked.answer.data[0]!.embedding).length, lengths[i]!);
  }
});

/** Words that are one token each to us and one word each to the vendor, so that a share of both is exact. */
const wordsOf = (count: number): string => Array.from({ length: count }, () => 'cat').join(' ');

// Alone in the process: callers, api, worker and vendor share it, and what else runs would spread the arrivals.
test.serial(
  'a hundred single calls at once are few calls to the vendor, each with its own vector and price',
  async (t) => {
    const accounts = await Promise.all(Array.from({ length: 4 }, () => stack.createAccount()));
    const texts = Array.from({ length: 100 }, (_, i) => wordsOf(1 + i));
    const callers = new Agent({ connections: texts.length, keepAliveTimeout: 60_000 });
    t.teardown(() => callers.close());
    const sendAll = (): Promise<Asked[]> =>
      Promise.all(
        texts.map(async (input, i): Promise<Asked> => {
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
          return { status: statusCode, answer: (await body.json()) as Answer, requestId };
        }),
      );
    const callsBefore = (): number => sentTo('emb-merged+slow-50').length;

    const first = await sendAll();
    const firstCalls = callsBefore();
    const second = await sendAll();
    const calls = sentTo('emb-merged+slow-50').slice(firstCalls);
    t.true(calls.length <= 20, `${calls.length} calls on connections that were there`);
    t.is(
      calls.reduce((sum, call) => sum + (call.body!['input'] as unknown[]).length, 0),
      texts.length,
    );
    t.true(calls.every((call) => call.body?.['encoding_format'] === 'base64'));

    for (const answers of [first, second]) {
      for (const [i, asked] of answers.entries()) {
        isVectorOf(t, asked, [texts[i]!]);
        t.is(asked.answer.usage.prompt_tokens, i + 1);
        t.is(toNano(asked.answer.usage.cost_request), BigInt(i + 1) * 7_770n);
      }
    }
    t.is(new Set([...first, ...second].map((one) => one.answer.id)).size, 200);
    for (const [a, account] of accounts.entries()) {
      const own = [...first, ...second].filter((_, i) => i % 4 === a);
      const receipts = own.reduce((sum, one) => sum + toNano(one.answer.usage.cost_request), 0n);
      t.is(await readLoss(stack, account.id, '100'), receipts);
    }
  },
);

// Callers that come at once come on connections of their own: nothing is warm the first time.
test.serial('a hundred single calls on new connections are few calls to the vendor as well', async (t) => {
  const account = await stack.createAccount();
  const answers = await Promise.all(
    Array.from({ length: 100 }, (_, i) => embed(account, 'burst', wordsOf(1 + i), { dimensions: 16 })),
  );
  t.true(answers.every((one) => one.status === 200));
  const calls = sentTo('emb-burst+slow-50').length;
  t.true(calls <= 40, `${calls} calls`);
});

test('the end user of a caller is not told to the vendor where calls are merged', async (t) => {
  const account = await stack.createAccount();
  const users = ['ann', 'bob', 'cy', 'dee'];
  const answers = await Promise.all(
    users.map((user) => embed(account, 'narrow-users', `text of ${user}`, { user })),
  );
  t.true(answers.every((one) => one.status === 200));
  const merged = sentTo('emb-narrow-users').filter((call) => (call.body!['input'] as unknown[]).length > 1);
  t.true(merged.every((call) => call.body?.['user'] === undefined));
  const row = await findRow(stack, answers[1]!.requestId);
  t.is(row.user, 'bob');
});

test('a vendor’s bound on inputs splits a request, whose answer stays whole and in order', async (t) => {
  const account = await stack.createAccount();
  const texts = Array.from({ length: 11 }, (_, i) => `split ${i}`);
  const asked = await embed(account, 'narrow', texts);
  isVectorOf(t, asked, texts);
  t.is(asked.answer.usage.prompt_tokens, 22);
  t.true(sentTo('emb-narrow').every((call) => (call.body!['input'] as unknown[]).length <= 3));
});

test('special tokens that the catalog does not tell of are reserved, so that the vendor’s count of short inputs is paid', async (t) => {
  const account = await stack.createAccount();
  const letters = Array.from({ length: 26 }, (_, i) => String.fromCharCode(97 + i));
  const asked = await embed(account, 'marking', letters);
  t.is(asked.answer.usage.prompt_tokens, 3 * letters.length);
  t.is(await readLoss(stack, account.id, '100'), BigInt(3 * letters.length) * 7_770n);
});

test('one caller’s poison fails that caller alone', async (t) => {
  const accounts = await Promise.all(Array.from({ length: 20 }, () => stack.createAccount()));
  const texts = accounts.map((_, i) => (i === 7 ? 'some poison here' : wordsOf(i + 1)));
  const answers = await Promise.all(texts.map((text, i) => embed(accounts[i]!, 'poisoned', text)));
  for (const [i, asked] of answers.entries()) {
    if (i === 7) {
      t.is(asked.status, 422);
      t.is(asked.answer.error.code, 'upstream_rejected');
      t.regex(asked.answer.error.message, /refuses/);
      t.is(await readLoss(stack, accounts[i]!.id, '100'), 0n);
    } else {
      isVectorOf(t, asked, [texts[i]!]);
      t.is(await readLoss(stack, accounts[i]!.id, '100'), BigInt(i + 1) * 7_770n);
    }
  }
  await waitForNoReservation(stack);
});

test('an input whose vector is not all finite numbers fails its request, and what was embedded beside it is paid', async (t) => {
  const account = await stack.createAccount();
  const asked = await embed(account, 'overflowing-numbers', ['fine', 'an overflow']);
  t.is(asked.status, 422);
  t.is(asked.answer.error.code, 'upstream_rejected');
  t.is(
    asked.answer.error.message,
    'The model gave input.1 a vector that is not all finite numbers. (1 of 2 inputs was embedded, and charged.)',
  );
  await waitForNoReservation(stack);
  t.is(await readLoss(stack, account.id, '100'), 7_770n);
});

test('2048 inputs of 1536 dimensions come back in their order', async (t) => {
  const account = await stack.createAccount();
  const texts = Array.from({ length: 2048 }, (_, i) => `input ${i}`);
  const asked = await embed(account, 'large', texts, { encoding_format: 'base64' });
  isVectorOf(t, asked, texts);
  t.is(asked.answer.usage.prompt_tokens, 4096);
  t.is(await readLoss(stack, account.id, '100'), 4096n * 7_770n);
});

test('an answer tells its length unless it is large', async (t) => {
  const account = await stack.createAccount();
  for (const [count, isTold] of [
    [1, true],
    [100, false],
  ] as const) {
    for (const encoding_format of ['float', 'base64']) {
      const input = Array.from({ length: count }, (_, i) => `length ${i}`);
      const asked = { model: 'plain', input, encoding_format };
      const response = await stack.post('/v1/embeddings', account.apiKey, asked);
      const { byteLength } = await response.arrayBuffer();
      t.is(response.headers.get('content-type'), 'application/json; charset=utf-8');
      t.is(response.headers.get('content-length'), isTold ? String(byteLength) : null);
    }
  }
});

test('many floats come back as well-formed as few', async (t) => {
  const account = await stack.createAccount();
  const texts = Array.from({ length: 200 }, (_, i) => `float ${i}`);
  isVectorOf(t, await embed(account, 'plain', texts), texts);
});

test('the same text twice is two vectors and is paid twice', async (t) => {
  const account = await stack.createAccount();
  const asked = await embed(account, 'twice', ['same', 'same']);
  isVectorOf(t, asked, ['same', 'same']);
  t.is(asked.answer.usage.prompt_tokens, 2);
});

test('an input of exactly 8192 tokens is taken', async (t) => {
  const account = await stack.createAccount();
  const asked = await embed(account, 'long', wordsOf(8192));
  t.is(asked.status, 200);
  t.is(asked.answer.usage.prompt_tokens, 8192);
});

test('what the vendor does not count is counted here', async (t) => {
  const account = await stack.createAccount();
  const { answer, requestId } = await embed(account, 'unreported', ['cat cat cat', 'dog']);
  t.is(answer.usage.prompt_tokens, 4);
  t.is(await readLoss(stack, account.id, '100'), 4n * 7_770n);
  t.true((await findRow(stack, requestId)).counted);
});

test('prices by character and by request are paid as they say', async (t) => {
  const byCharacter = await stack.createAccount();
  const asked = await embed(byCharacter, 'by-character', ['12345', 'äöü']);
  t.is(toNano(asked.answer.usage.cost_request), 26_640n);
  t.is(await readLoss(stack, byCharacter.id, '100'), 26_640n);
  t.is((await findRow(stack, asked.requestId)).characters, 8);
  const byRequest = await stack.createAccount();
  t.is((await embed(byRequest, 'by-request', ['a', 'b', 'c'])).answer.usage.cost_request, 0.5);
});

test.serial('the seconds of a merged call are split over its callers, not paid by each', async (t) => {
  const account = await stack.createAccount();
  const startedAtMs = performance.now();
  const answers = await Promise.all(Array.from({ length: 20 }, () => embed(account, 'by-time', 'cat')));
  const tookMs = performance.now() - startedAtMs;
  t.true(answers.every((one) => one.status === 200));
  const calls = sentTo('emb-time+slow-200').length;
  const rows = await Promise.all(answers.map((one) => findRow(stack, one.requestId)));
  const billedMs = rows.reduce((sum, row) => sum + row.billedMs, 0);
  const all = `${billedMs} ms for ${calls} calls of 200 ms, within ${tookMs} ms`;
  t.true(billedMs >= calls * 190 && billedMs <= calls * tookMs, all);
  t.is(await readLoss(stack, account.id, '100'), BigInt(billedMs) * 10_000n);
  const receipts = answers.reduce((sum, one) => sum + toNano(one.answer.usage.cost_request), 0n);
  t.is(await readLoss(stack, account.id, '100'), receipts);
});

test('free requests are used one for each call, merged or not', async (t) => {
  const account = await stack.createAccount({ freeRequests: 5 });
  const answers = await Promise.all(Array.from({ length: 8 }, () => embed(account, 'free', 'cat')));
  t.is(answers.filter((one) => one.answer.usage.free_request).length, 5);
  t.is(await readLoss(stack, account.id, '100'), 3n * 7_770n);
});

test('a balance that does not cover the inputs is a 402, and the others of its batch are served', async (t) => {
  const rich = await stack.createAccount();
  const poor = await stack.createAccount({ balance: '0.000007' });
  const answers = await Promise.all([
    embed(rich, 'plain', 'cat'),
    embed(poor, 'plain', 'cat'),
    embed(rich, 'plain', 'dog'),
  ]);
  t.deepEqual(
    answers.map((one) => one.status),
    [200, 402, 200],
  );
});

for (const [model, status, code] of [
  ['failing', 502, 'upstream_error'],
  ['cut', 502, 'upstream_error'],
  ['late', 504, 'upstream_timeout'],
] as const) {
  test(`a vendor that is ${model} is a ${status} for every caller of the batch, and nobody pays`, async (t) => {
    const account = await stack.createAccount();
    const answers = await Promise.all([1, 2, 3].map((i) => embed(account, model, `text ${i}`)));
    for (const { status: got, answer, requestId } of answers) {
      t.is(got, status);
      t.is(answer.error.code, code);
      t.like(await findRow(stack, requestId), { success: false, responseCode: status, costNano: 0n });
    }
    t.is(await readLoss(stack, account.id, '100'), 0n);
    await waitForNoReservation(stack, account.id);
  });
}

test('a caller who leaves while the vendor works lets it end and pays what its answer would have cost', async (t) => {
  const account = await stack.createAccount();
  const leaving = new AbortController();
  const answer = fetch(`${stack.url}/v1/embeddings`, {
    method: 'POST',
    signal: leaving.signal,
    headers: { 'content-type': 'application/json', authorization: `Bearer ${account.apiKey}` },
    body: JSON.stringify({ model: 'slow', input: ['cat', 'cat cat'] }),
  });
  const isOurs = (one: LoggedRequest): boolean => one.model === 'emb-slow+slow-4000';
  await vendor.requests.waitFor(isOurs);
  leaving.abort();
  await t.throwsAsync(answer, { any: true });
  const call = await vendor.requests.waitFor((one) => isOurs(one) && one.isOver);
  t.false(call.isAborted);
  await waitForNoReservation(stack, account.id);
  t.is(await readLoss(stack, account.id, '100'), 3n * 7_770n);
  const rows = stack.mongo.db.collection<RequestLogDocument>('request_logs');
  const row = await waitFor('the row', () => rows.findOne({ accountId: account.id }));
  t.like(row, {
    success: false,
    responseCode: 499,
    errorCode: 'job_cancelled',
    promptTokens: 3,
    counted: false,
    costNano: 3n * 7_770n,
  });
});
