import test from 'ava';
import type { AdmittedRequest } from '../../../../shared/money/admitted-request.ts';
import {
  createEmbeddingJob,
  prepareEmbedding,
  type PrepareEmbeddingOptions,
} from '../../../../shared/preparing/embeddings/prepare-embedding.ts';
import { createModelCatalog } from '../../../support/model-catalog.ts';

const catalog = createModelCatalog(`
upstreams:
  vendor: { kind: openai, baseUrl: "http://127.0.0.1:1/v1" }
models:
  - id: vectors
    aliases: [old-vectors]
    type: embedding
    context: 8192
    dimensions: { default: 1536, adjustable: true }
    tokenizer: cl100k_base
    special_tokens: 0
    pricing: { in_cost_per_million: 1000 }
    routes: [{ upstream: vendor }]
`);
const { signal } = new AbortController();

const prepare = (more: object, options: Partial<PrepareEmbeddingOptions> = {}) =>
  prepareEmbedding(
    { catalog },
    { model: 'vectors', input: ['two words', 'two'], ...more },
    { accountId: 'account', signal, ...options },
  );

test('an embedding request becomes its inputs with their tokens, and the most that it may cost', async (t) => {
  const { model, estimate, job, format } = await prepare({ model: 'old-vectors', user: 'u' });
  t.is(model.id, 'vectors');
  t.deepEqual(job, { inputs: ['two words', 'two'], inputTokens: [2, 1], dimensions: null });
  t.is(format, 'float');
  t.deepEqual(estimate, {
    model,
    promptTokens: 3,
    fixedNano: 3_000_000n,
    nanoPerUnit: 0n,
    requestedUnits: 0,
    minUnits: 0,
    sharePermille: 1_000,
    user: 'u',
  });
});

test('the job of a single request has one part', async (t) => {
  const prepared = await prepare({ input: 'two', dimensions: 8, encoding_format: 'base64' });
  t.is(prepared.format, 'base64');
  const request = { requestId: 'r' } as AdmittedRequest;
  t.deepEqual(createEmbeddingJob(prepared, request, 'channel'), {
    v: 1,
    kind: 'embedding',
    model: 'vectors',
    replyChannel: 'channel',
    parts: [{ request, inputs: ['two'], inputTokens: [1], dimensions: 8 }],
  });
});

test('the account is checked once the model and its options are known, and before anything is tokenized', async (t) => {
  const checks: string[] = [];
  const checkEarly: PrepareEmbeddingOptions['checkEarly'] = async ({ id }, readsFiles) => {
    checks.push(`${id} ${readsFiles}`);
    throw new Error('no money');
  };
  await t.throwsAsync(prepare({ dimensions: 2_000 }, { checkEarly }), {
    message: 'dimensions: must be <= 1536',
  });
  t.deepEqual(checks, []);
  await t.throwsAsync(prepare({ input: 'x '.repeat(100_000) }, { checkEarly }), { message: 'no money' });
  t.deepEqual(checks, ['vectors false']);
});

test('memory is held for the text of token IDs, once they are known to be valid', async (t) => {
  const held: number[] = [];
  const holdText = (bytes: number): void => {
    held.push(bytes);
  };
  await t.throwsAsync(prepare({ input: [9_999_999] }, { holdText }), { code: 'validation_failed' });
  t.deepEqual(held, []);
  const { job } = await prepare({ input: [20_375, 4_339] }, { holdText });
  t.deepEqual(job, { inputs: ['two words'], inputTokens: [2], dimensions: null });
  t.deepEqual(held, [9]);
});

test('an aborted signal or a failed check ends the preparation of long texts between two turns', async (t) => {
  const input = Array.from({ length: 20 }, () => 'word '.repeat(4_000));
  const closed = new AbortController();
  let turns = 0;
  await t.throwsAsync(
    prepare(
      { input },
      {
        signal: closed.signal,
        checkTurn: async () => {
          turns += 1;
          closed.abort(new Error('disconnected'));
        },
      },
    ),
    { message: 'disconnected' },
  );
  t.is(turns, 1);
  await t.throwsAsync(prepare({ input }, { checkTurn: () => Promise.reject(new Error('banned')) }), {
    message: 'banned',
  });
});
