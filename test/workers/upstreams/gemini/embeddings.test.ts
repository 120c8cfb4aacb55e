import test from 'ava';

import { fromEmbeddingResponse } from '../../../../workers/upstreams/gemini/from-embedding-response.ts';
import { toEmbeddingRequest } from '../../../../workers/upstreams/gemini/to-embedding-request.ts';
import { type EmbeddingCall, UpstreamError } from '../../../../workers/upstreams/upstream.ts';
import { createTarget } from '../../../support/upstream-target.ts';

const CALL: EmbeddingCall = { inputs: ['a', 'b'], dimensions: null, user: 'u' };

test('each input becomes a request with the model, and with dimensions if they were requested', (t) => {
  const requests = (outputDimensionality?: number): object =>
    CALL.inputs.map((text) => ({
      model: 'models/gemini-embedding-001',
      content: { parts: [{ text }] },
      ...(outputDimensionality === undefined ? {} : { outputDimensionality }),
    }));
  for (const model of ['gemini-embedding-001', 'models/gemini-embedding-001']) {
    t.deepEqual(toEmbeddingRequest(createTarget(model), CALL), { requests: requests() });
  }
  const sized = { ...CALL, dimensions: 8 };
  t.deepEqual(toEmbeddingRequest(createTarget('gemini-embedding-001'), sized), { requests: requests(8) });
  const dropping = createTarget('gemini-embedding-001', { drops: new Set(['dimensions']) });
  t.deepEqual(toEmbeddingRequest(dropping, sized), { requests: requests() });
});

const read = (response: unknown, call = CALL): ReturnType<typeof fromEmbeddingResponse> =>
  fromEmbeddingResponse(JSON.stringify(response), call, 'key');

/** The shape of BatchEmbedContentsResponse (Gemini API reference, embeddings). */
test('vectors are bytes in the order of the inputs, with the token count if it was reported', (t) => {
  const embeddings = [{ values: [0.5, -2, 0] }, { values: [1, 2, 1e-7] }];
  const bytes = Buffer.from(Float32Array.from([0.5, -2, 0, 1, 2, 1e-7]).buffer);
  const response = read({ embeddings });
  t.true(response.vectors.equals(bytes));
  t.like(response, { dimensions: 3, promptTokens: null });
  t.is(read({ embeddings, usageMetadata: { promptTokenCount: 2 } }).promptTokens, 2);
  t.is(read({ embeddings }, { ...CALL, dimensions: 3 }).dimensions, 3);
});

test('an input without a vector of finite numbers is broken, and the others keep theirs', (t) => {
  for (const values of [null, [], [null], ['NaN'], ['Infinity']]) {
    const { vectors, dimensions, broken } = read({ embeddings: [{ values }, { values: [2] }] });
    t.deepEqual([dimensions, broken, vectors.readFloatLE(4)], [1, [0], 2], JSON.stringify(values));
  }
});

test('a response that lacks a numeric vector of equal length for each input is an unavailable failure', (t) => {
  const responses: unknown[] = [
    {},
    { embeddings: [] },
    { embeddings: [{ values: [1] }] },
    { embeddings: [{ values: [1] }, { values: [1] }, { values: [1] }] },
    { embeddings: [{ values: [1] }, { values: [1, 2] }] },
    { embeddings: [{ values: [1] }, { values: ['1'] }] },
    { embeddings: [{ values: [1] }, {}] },
    { embeddings: ['AAAA', 'AAAA'] },
    [],
  ];
  for (const response of responses) {
    const error = t.throws(() => read(response), { instanceOf: UpstreamError }, JSON.stringify(response));
    t.is(error.failure, 'unavailable');
  }
  const embeddings = [{ values: [1] }, { values: [2] }];
  t.throws(() => read({ embeddings }, { ...CALL, dimensions: 2 }), { message: /1 dimensions instead of 2/ });
  const refused = t.throws(() => read({ error: { code: 400, status: 'INVALID_ARGUMENT', message: 'x' } }));
  t.like(refused, { failure: 'rejected' });
});
