import test, { type ExecutionContext } from 'ava';
import { DEFAULT_DIMENSIONS, deriveVector } from '../../../scripts/vendor-simulator/vectors.ts';
import { countTokens } from '../../../shared/catalog/count-tokens.ts';
import { findRow, readAmountCharged, toNano } from '../../support/observe.ts';
import { ServerStack, serverUpstreams, type ServerUpstream } from '../../support/server-stack.ts';
import type { TestAccount } from '../../support/stack.ts';

/** Embeddings at every server with OpenAI's API: calls fit its limits, and a refused input fails alone. */

const embeddingUpstreams = serverUpstreams.filter(({ like }) => like !== 'deepseek');
const fields = `type: embedding, context: 32768, pricing: { in_cost_per_million: 7.77 }`;

const servers = new ServerStack(
  test,
  ({ name, like, family }) =>
    like === 'deepseek'
      ? []
      : [
          `  - { id: ${name}, ${fields}, dimensions: { default: ${DEFAULT_DIMENSIONS} }, routes: [{ upstream: ${name}, model: "${family}" }] }`,
          `  - { id: ${name}-merged, ${fields}, dimensions: { default: ${DEFAULT_DIMENSIONS} }, routes: [{ upstream: ${name}, model: "${family}+slow-50" }] }`,
          `  - { id: ${name}-short, ${fields}, dimensions: { default: ${DEFAULT_DIMENSIONS}, adjustable: true }, routes: [{ upstream: ${name}, model: "${family}-matryoshka" }] }`,
        ],
  // All that wait go with one call.
  'maxConcurrency: 1',
);

const russian = 'Съешь же ещё этих мягких французских булок, да выпей чаю. ';

interface Embeddings {
  readonly data: readonly { readonly index: number; readonly embedding: readonly number[] }[];
  readonly usage: { readonly prompt_tokens: number; readonly cost_request: number };
  readonly error: { readonly message: string };
}

interface Result {
  readonly status: number;
  readonly body: Embeddings;
  readonly requestId: string;
}

async function embed(account: TestAccount, model: string, input: unknown, more = {}): Promise<Result> {
  const response = await servers.stack.post('/v1/embeddings', account.apiKey, { model, input, ...more });
  const body = (await response.json()) as Embeddings;
  return { status: response.status, body, requestId: response.headers.get('x-request-id')! };
}

function hasVectorsOf(t: ExecutionContext, { status, body }: Result, texts: readonly string[]): void {
  t.is(status, 200, JSON.stringify(body).slice(0, 500));
  t.deepEqual(
    body.data.map(({ index }) => index),
    texts.map((_, index) => index),
  );
  t.true(
    body.data.every(({ embedding }, index) => {
      const vector = deriveVector(texts[index]!, embedding.length);
      return embedding.every((value, at) => Math.fround(value) === vector[at]);
    }),
    'each vector belongs to its text',
  );
}

async function isChargedExactly(t: ExecutionContext, account: TestAccount, result: Result): Promise<void> {
  const { cost_request: cost, prompt_tokens: tokens } = result.body.usage;
  t.true(tokens > 0);
  t.is(toNano(cost), BigInt(tokens) * 7_770n);
  t.is((await findRow(servers.stack, result.requestId)).costNano, toNano(cost));
  t.is(await readAmountCharged(servers.stack, account.id, '100'), toNano(cost));
}

const statusesOf = (upstream: ServerUpstream, text: string): readonly (number | null)[] =>
  servers.sentTo(upstream, text).map(({ status }) => status);

/** Ollama and OpenRouter's vendors cut off what is too long. */
const refusesLong = ({ like }: ServerUpstream): boolean => like !== 'ollama' && like !== 'openrouter';

for (const upstream of embeddingUpstreams) {
  const { name } = upstream;

  test(`${name}: one input`, async (t) => {
    const account = await servers.stack.createAccount();
    const text = `one input for ${name}`;
    const result = await embed(account, name, text, { user: 'u-1', encoding_format: 'float' });
    hasVectorsOf(t, result, [text]);
    t.deepEqual(statusesOf(upstream, text), [200]);
    await isChargedExactly(t, account, result);
  });

  test(`${name}: forty inputs, in calls of at most as many as the server takes`, async (t) => {
    const account = await servers.stack.createAccount();
    const texts = Array.from({ length: 40 }, (_, index) => `input ${index} of forty for ${name}`);
    const result = await embed(account, name, texts);
    hasVectorsOf(t, result, texts);
    t.true(statusesOf(upstream, `of forty for ${name}`).every((status) => status === 200));
    await isChargedExactly(t, account, result);
  });

  test(`${name}: shorter vectors, where the model has them`, async (t) => {
    const account = await servers.stack.createAccount();
    const text = `shorter vector for ${name}`;
    const result = await embed(account, `${name}-short`, text, { dimensions: 8 });
    if (upstream.like === 'llamacpp') {
      // It ignores the field, so its vectors do not have the length that was asked for.
      t.is(result.status, 502);
      return;
    }
    hasVectorsOf(t, result, [text]);
    t.is(result.body.data[0]?.embedding.length, 8);
    t.deepEqual(statusesOf(upstream, text), [200]);
  });

  test(`${name}: an input that is too long fails alone`, async (t) => {
    const [guilty, ...others] = await Promise.all(
      Array.from({ length: 5 }, () => servers.stack.createAccount()),
    );
    const long = `too long for ${name} ${russian.repeat(6_500 / countTokens(russian))}`;
    const [refused, ...good] = await Promise.all([
      embed(guilty!, `${name}-merged`, ['fine', long]),
      ...others.map((account, index) => embed(account, `${name}-merged`, `fine ${index} for ${name}`)),
    ]);
    for (const [index, result] of good.entries()) {
      hasVectorsOf(t, result, [`fine ${index} for ${name}`]);
      await isChargedExactly(t, others[index]!, result);
    }
    t.is(refused.status, refusesLong(upstream) ? 400 : 200, JSON.stringify(refused.body).slice(0, 300));
    if (refusesLong(upstream)) t.is(await readAmountCharged(servers.stack, guilty!.id, '100'), 0n);
  });
}
