import test from 'ava';

import { type EmbeddingCall, UpstreamError } from '../../../../workers/upstreams/upstream.ts';
import { fromEmbeddingResponse } from '../../../../workers/upstreams/openai/from-embedding-response.ts';

function callFor(count: number, dimensions: number | null = null): EmbeddingCall {
  return { inputs: Array.from({ length: count }, (_, index) => `text ${index}`), dimensions, user: null };
}

function toBytes(...numbers: number[]): Buffer {
  return Buffer.from(Float32Array.from(numbers).buffer);
}

function toBase64(...numbers: number[]): string {
  return toBytes(...numbers).toString('base64');
}

/** The shape of "Create embeddings" in the OpenAI API reference. */
function toResponse(...embeddings: (string | number[])[]): { object: string; data: object[]; usage: object } {
  return {
    object: 'list',
    data: embeddings.map((embedding, index) => ({ object: 'embedding', embedding, index })),
    usage: { prompt_tokens: 8, total_tokens: 8 },
  };
}

function read(body: object | string, call: EmbeddingCall): ReturnType<typeof fromEmbeddingResponse> {
  return fromEmbeddingResponse(
    Buffer.from(typeof body === 'string' ? body : JSON.stringify(body)),
    call,
    null,
  );
}

const ONE = [0.25, -1, 3];
const TWO = [1, 2, 0.5];
const BOTH = toBytes(...ONE, ...TWO);

test('base64, numbers and a mixture give the same bytes', (t) => {
  for (const one of [ONE, toBase64(...ONE)]) {
    for (const two of [TWO, toBase64(...TWO)]) {
      const response = read(toResponse(one, two), callFor(2));
      t.true(response.vectors.equals(BOTH));
      t.is(response.dimensions, 3);
      t.is(response.promptTokens, 8);
    }
  }
});

test('vectors are in the order of their index, or of arrival if they have none', (t) => {
  const item = (index: number | undefined, numbers: number[]): object => ({
    embedding: toBase64(...numbers),
    index,
  });
  t.true(read({ data: [item(1, TWO), item(0, ONE)] }, callFor(2)).vectors.equals(BOTH));
  t.true(read({ data: [item(undefined, ONE), item(undefined, TWO)] }, callFor(2)).vectors.equals(BOTH));
});

test('whitespace, field order and escaped slashes make no difference', (t) => {
  const response = toResponse(toBase64(...ONE), toBase64(...TWO));
  t.true(read(JSON.stringify(response, null, 4), callFor(2)).vectors.equals(BOTH));
  const reversed = {
    usage: null,
    data: response.data.map((item) => Object.fromEntries(Object.entries(item).toReversed())),
  };
  t.true(read(reversed, callFor(2)).vectors.equals(BOTH));
  // With all bits set, the base64 consists of slashes, which JSON may escape.
  const slashes = Buffer.alloc(12, 0xff).toString('base64');
  t.regex(slashes, /^\/+$/);
  const escaped = JSON.stringify(toResponse(slashes)).replaceAll('/', String.raw`\/`);
  t.true(read(escaped, callFor(1)).vectors.equals(Buffer.alloc(12, 0xff)));
  const elsewhere = { ...response, model: 'a\\b "embedding": "x' };
  t.true(read(elsewhere, callFor(2)).vectors.equals(BOTH));
});

test('missing usage is null, not zero', (t) => {
  t.is(read({ data: [{ embedding: ONE, index: 0 }] }, callFor(1)).promptTokens, null);
  t.is(
    read({ data: [{ embedding: ONE, index: 0 }], usage: { prompt_tokens: 0 } }, callFor(1)).promptTokens,
    0,
  );
});

test('an input without a vector of finite numbers is broken, and the others keep theirs', (t) => {
  for (const embedding of [null, [], '', [1, null, 2], [1, 'NaN', 2], ['Infinity', 0, 0]]) {
    const data = [
      { embedding, index: 0 },
      { embedding: ONE, index: 1 },
    ];
    const { vectors, dimensions, broken } = read({ data }, callFor(2));
    t.deepEqual([dimensions, broken], [3, [0]], JSON.stringify(embedding));
    t.true(vectors.subarray(12).equals(toBytes(...ONE)));
  }
  const alone = read({ data: [{ embedding: null, index: 0 }] }, callFor(1));
  t.deepEqual(alone.broken, [0]);
});

test('every response that could give a caller a broken vector or a vector of another caller is rejected', (t) => {
  const base64 = toBase64(...ONE);
  const broken: [string, object | string][] = [
    ['too few', toResponse(base64)],
    ['too many', toResponse(base64, base64, base64)],
    ['unequal', toResponse(base64, toBase64(1, 2))],
    ['unequal numbers', toResponse(ONE, [1, 2])],
    ['no floats', toResponse('AAAA', 'AAAA')],
    ['invalid base64', toResponse(base64, `${base64.slice(0, -2)}!!`)],
    [
      'no numbers',
      {
        data: [
          { embedding: [1, 2, '3'], index: 0 },
          { embedding: ONE, index: 1 },
        ],
      },
    ],
    ['no vectors', { data: [{ index: 0 }, { index: 1 }] }],
    [
      'same index',
      {
        data: [
          { embedding: base64, index: 1 },
          { embedding: base64, index: 1 },
        ],
      },
    ],
    [
      'index out of range',
      {
        data: [
          { embedding: base64, index: 0 },
          { embedding: base64, index: 2 },
        ],
      },
    ],
    [
      'negative index',
      {
        data: [
          { embedding: base64, index: 0 },
          { embedding: base64, index: -1 },
        ],
      },
    ],
    [
      'fractional index',
      {
        data: [
          { embedding: base64, index: 0 },
          { embedding: base64, index: 0.5 },
        ],
      },
    ],
    ['not a list', { data: 'x' }],
    ['cut off', JSON.stringify(toResponse(base64, base64)).slice(0, 60)],
    ['cut off in a key', '{"data":[{"embedding"'],
    ['text', 'nonsense'],
  ];
  for (const [name, body] of broken) {
    const error = t.throws(() => read(body, callFor(2)), { instanceOf: UpstreamError }, name);
    t.is(error?.failure, 'unavailable', name);
  }
});

test('dimensions other than those requested are rejected', (t) => {
  t.is(read(toResponse(ONE), callFor(1, 3)).dimensions, 3);
  t.throws(() => read(toResponse(ONE), callFor(1, 2)), { message: /3 dimensions instead of 2/ });
});

test('an error within a 200 response has the failure kind of its code', (t) => {
  const error = t.throws(() => read({ error: { code: 429, message: 'x' } }, callFor(1)), {
    instanceOf: UpstreamError,
  });
  t.is(error?.failure, 'rate_limited');
});
