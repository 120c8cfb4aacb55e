import test from 'ava';

import { fromEmbeddingResponse } from '../../../../workers/upstreams/gemini/from-embedding-response.ts';
import { toEmbeddingRequest } from '../../../../workers/upstreams/gemini/to-embedding-request.ts';
import { type EmbeddingCall, UpstreamError } from '../../../../workers/upstreams/upstream.ts';
import { createTarget } from '../../../support/upstream-target.ts';

const CALL: EmbeddingCall = { inputs: ['a', 'b'], dimensions: null, user: 'u' };

test('each input is a request that repeats the model, with a length if one was requested', (t) => {
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

const read = (answer: unknown, call = CALL): ReturnType<typeof fromEmbeddingResponse> =>
  fromEmbeddingResponse(JSON.stringify(answer), call, 'key');

/** The shape of BatchEmbedContentsResponse (Gemini API reference, embeddings). */
test('vectors are bytes in the order of the inputs, with the token count if it is reported', (t) => {
  const embeddings = [{ values: [0.5, -2, 0] }, { values: [1, 2, 1e-7] }];
  const bytes = Buffer.from(Float32Array.from([0.5, -2, 0, 1, 2, 1e-7]).buffer);
  const answer = read({ embeddings });
  t.true(answer.vectors.equals(bytes));
  t.like(answer, { dimensions: 3, promptTokens: null });
  t.is(read({ embeddings, usageMetadata: { promptTokenCount: 2 } }).promptTokens, 2);
  t.is(read({ embeddings }, { ...CALL, dimensions: 3 }).dimensions, 3);
});

test('a response without exactly one numeric vector of the same length per input is unavailable', (t) => {
  const answers: unknown[] = [
    {},
    { embeddings: [] },
    { embeddings: [{ values: [1] }] },
    { embeddings: [{ values: [1] }, { values: [1] }, { values: [1] }] },
    { embeddings: [{ values: [1] }, { values: [1, 2] }] },
    { embeddings: [{ values: [] }, { values: [] }] },
    { embeddings: [{ values: [1] }, { values: ['1'] }] },
    { embeddings: [{ values: [1] }, { values: [null] }] },
    { embeddings: [{ values: [1] }, {}] },
    { embeddings: ['AAAA', 'AAAA'] },
    [],
  ];
  for (const answer of answers) {
    const error = t.throws(() => read(answer), { instanceOf: UpstreamError }, JSON.stringify(answer));
    t.is(error.failure, 'unavailable');
  }
  const embeddings = [{ values: [1] }, { values: [2] }];
  t.throws(() => read({ embeddings }, { ...CALL, dimensions: 2 }), { message: /1 dimensions instead of 2/ });
  const refused = t.throws(() => read({ error: { code: 400, status: 'INVALID_ARGUMENT', message: 'x' } }));
  t.like(refused, { failure: 'rejected' });
});
