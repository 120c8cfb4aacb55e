import { textOnlyFields } from '../../../../shared/work/queue/job-kinds.ts';
import test from 'ava';
import { countTokens } from '../../../../shared/catalog/count-tokens.ts';
import { flattenEvents } from '../../../support/chat-events.ts';
import { createContext, createTarget } from '../../../support/upstream-target.ts';
import { createBuiltinUpstream } from '../../../../workers/upstreams/builtin/builtin-upstream.ts';
import { UpstreamError } from '../../../../workers/upstreams/upstream.ts';

const context = createContext();
const upstream = createBuiltinUpstream({ encoderThreads: 1, wordPauseMs: 0 });
const image = {
  prompt: 'A cat',
  negativePrompt: null,
  ...textOnlyFields,
  n: 2,
  size: '256x256',
  isSizeRequested: true,
  quality: null,
  style: null,
  user: null,
};

test.after.always(() => upstream.close());

function embed(inputs: string[], dimensions: number | null = null, model = 'use-lite-en-512') {
  return upstream.embed!(createTarget(model), { inputs, dimensions, user: null }, context);
}

async function chat(model: string): Promise<string[]> {
  const kinds: string[] = [];
  const body = { messages: [{ role: 'user', content: 'hi' }] };
  const batches = upstream.chat!(createTarget(model), body, true, context);
  for await (const event of flattenEvents(batches)) kinds.push(event.type);
  return kinds;
}

test('embeddings are 512 float32 values per input, billed by the tokens of the inputs', async (t) => {
  const inputs = ['a cat', 'Привет, мир', ''];
  const response = await embed(inputs, 512);
  t.is(response.dimensions, 512);
  t.is(response.vectors.length, 3 * 512 * 4);
  t.is(
    response.promptTokens,
    inputs.reduce((sum, input) => sum + countTokens(input), 0),
  );
});

test('the tokens billed per input and the work of tokenizing it are limited', async (t) => {
  t.is((await embed(['word '.repeat(200_000), 'a cat'])).promptTokens, 8192 + 2);
});

test('dimensions other than 512 are rejected with the allowed value', async (t) => {
  const error = await t.throwsAsync(embed(['a cat'], 256), { instanceOf: UpstreamError, message: /512/ });
  t.is(error?.failure, 'rejected');
});

test('chat and images are served', async (t) => {
  t.deepEqual((await chat('demo-echo')).slice(-2), ['finish', 'usage']);
  t.is((await upstream.generateImages!(createTarget('demo-svg-image'), image, context)).images.length, 2);
});

test('a call is rejected if the requested model does not support its operation', async (t) => {
  for (const call of [
    () => chat('gpt-9'),
    () => chat('use-lite-en-512'),
    () => embed(['a cat'], null, 'demo-echo'),
    () => upstream.generateImages!(createTarget('demo-echo'), image, context),
  ]) {
    t.is((await t.throwsAsync(call(), { instanceOf: UpstreamError }))?.failure, 'rejected');
  }
});
