import test, { type ExecutionContext } from 'ava';
import sharp from 'sharp';

import { parseFaultWords } from '../../../../scripts/vendor-simulator/faults.ts';
import {
  startVendorSimulator,
  type VendorSimulator,
  type VendorSimulatorOptions,
} from '../../../../scripts/vendor-simulator/simulator.ts';
import { deriveVector } from '../../../../scripts/vendor-simulator/vectors.ts';
import { createContext, createImageCall, createTarget } from '../../../support/upstream-target.ts';
import { DEFAULT_HTTP_TIMEOUTS, type HttpTimeouts } from '../../../../workers/upstreams/http-client.ts';
import { createOpenAiUpstream } from '../../../../workers/upstreams/openai/openai-upstream.ts';
import {
  type CallContext,
  type ChatBody,
  type ChatEvent,
  type EmbeddingAnswer,
  type ImageResponse,
  UpstreamError,
  type UpstreamTarget,
} from '../../../../workers/upstreams/upstream.ts';

const KEY = 'sk-sim-0123456789';
const ASK: ChatBody = { messages: [{ role: 'user', content: 'hello there world' }] };
/** The simulator's response to that, and its usage in words. */
const REPLY = 'You said: hello there world';

interface Rig {
  readonly simulator: VendorSimulator;
  readonly chat: (
    model: string,
    stream: boolean,
    more?: Partial<CallContext & { body: ChatBody; drops: string[] }>,
  ) => ChatRun;
  readonly embed: (model: string, inputs: string[], dimensions?: number) => Promise<EmbeddingAnswer>;
  readonly draw: (model: string, n?: number) => Promise<ImageResponse>;
}

type ChatRun = AsyncIterable<ChatEvent>;

interface Said {
  text: string;
  reasoning: string;
  events: ChatEvent[];
  error: unknown;
}

async function startRig(
  t: ExecutionContext,
  options: VendorSimulatorOptions = {},
  timeouts: Partial<HttpTimeouts> = {},
): Promise<Rig> {
  const simulator = await startVendorSimulator(options);
  const upstream = createOpenAiUpstream({
    baseUrl: `${simulator.url}/v1`,
    timeouts: { ...DEFAULT_HTTP_TIMEOUTS, ...timeouts },
  });
  t.teardown(async () => {
    await simulator.close();
    await upstream.close();
  });
  const target = (model: string, drops: string[] = []): UpstreamTarget =>
    createTarget(model, { apiKey: KEY, drops: new Set(drops) });
  return {
    simulator,
    chat: (model, stream, { body = ASK, drops = [], ...more } = {}) =>
      upstream.chat(target(model, drops), body, stream, { ...createContext(), ...more }),
    embed: (model, inputs, dimensions) =>
      upstream.embed(target(model), { inputs, dimensions: dimensions ?? null, user: null }, createContext()),
    draw: (model, n = 1) =>
      upstream.generateImages(target(model), createImageCall({ negativePrompt: 'dogs', n }), createContext()),
  };
}

async function listen(run: ChatRun): Promise<Said> {
  const said: Said = { text: '', reasoning: '', events: [], error: null };
  try {
    for await (const event of run) {
      said.events.push(event);
      if (event.type === 'delta') {
        said.text += typeof event.delta['content'] === 'string' ? event.delta['content'] : '';
        const { reasoning_content } = event.delta;
        said.reasoning += typeof reasoning_content === 'string' ? reasoning_content : '';
      }
    }
  } catch (error) {
    said.error = error;
  }
  return said;
}

function find<Type extends ChatEvent['type']>(said: Said, type: Type): Extract<ChatEvent, { type: Type }>[] {
  return said.events.filter((event): event is Extract<ChatEvent, { type: Type }> => event.type === type);
}

function getError(t: ExecutionContext, said: Said): UpstreamError {
  t.true(said.error instanceof UpstreamError, String(said.error));
  return said.error as UpstreamError;
}

test('a chat has the same output and usage, streamed or not', async (t) => {
  const { chat, simulator } = await startRig(t);
  for (const stream of [true, false]) {
    const said = await listen(chat('gpt-sim', stream));
    t.is(said.error, null);
    t.is(said.text, REPLY);
    t.deepEqual(find(said, 'finish'), [
      { type: 'finish', index: 0, finishReason: 'stop', nativeFinishReason: 'stop' },
    ]);
    t.like(find(said, 'usage')[0], { usage: { promptTokens: 3, completionTokens: 5, cachedTokens: 0 } });
    t.is(find(said, 'usage').length, 1);
  }
  const [first] = simulator.requests.entries;
  t.is(first?.key, KEY);
  t.is(first?.headers['content-type'], 'application/json');
  t.deepEqual(first?.body, {
    model: 'gpt-sim',
    messages: ASK.messages,
    stream: true,
    stream_options: { include_usage: true },
  });
});

test('the token limit, several choices and log probabilities are honoured', async (t) => {
  const { chat } = await startRig(t);
  for (const stream of [true, false]) {
    const said = await listen(
      chat('gpt-sim', stream, { body: { ...ASK, max_tokens: 2, n: 2, logprobs: true } }),
    );
    t.is(said.error, null);
    t.deepEqual(
      find(said, 'finish').map((finish) => [finish.index, finish.finishReason]),
      [
        [0, 'length'],
        [1, 'length'],
      ],
    );
    t.like(find(said, 'usage')[0], { usage: { completionTokens: 4 } });
    t.true(find(said, 'delta').some((event) => event.logprobs !== undefined));
  }
});

test('tool calls arrive with index, id and name once, then their arguments', async (t) => {
  const parameters = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] };
  const tools = ['get_weather', 'get_time'].map((name) => ({
    type: 'function',
    function: { name, parameters },
  }));
  const { chat } = await startRig(t);
  for (const stream of [true, false]) {
    const said = await listen(chat('gpt-sim-parallel', stream, { body: { ...ASK, tools } }));
    t.is(said.error, null);
    const calls: { id: string; name: string; arguments: string }[] = [];
    for (const { delta } of find(said, 'delta')) {
      for (const piece of (delta['tool_calls'] ?? []) as ToolCallPiece[]) {
        const call = (calls[piece.index] ??= { id: '', name: '', arguments: '' });
        call.id += piece.id ?? '';
        call.name += piece.function.name ?? '';
        call.arguments += piece.function.arguments;
      }
    }
    t.deepEqual(calls, [
      { id: 'call_simulated_0', name: 'get_weather', arguments: '{"city":"simulated"}' },
      { id: 'call_simulated_1', name: 'get_time', arguments: '{"city":"simulated"}' },
    ]);
    t.is(find(said, 'finish')[0]?.finishReason, 'tool_calls');
  }
});

interface ToolCallPiece {
  readonly index: number;
  readonly id?: string;
  readonly function: { readonly name?: string; readonly arguments: string };
}

test('a reasoning model works if the route drops the parameters that it rejects', async (t) => {
  const { chat } = await startRig(t);
  const body = { ...ASK, max_tokens: 50, temperature: 0.7 };
  const refused = getError(t, await listen(chat('gpt-sim-reasoner', true, { body })));
  t.is(refused.failure, 'rejected');
  t.regex(refused.message, /max_tokens/);
  for (const stream of [true, false]) {
    const said = await listen(
      chat('gpt-sim-reasoner', stream, { body, drops: ['max_tokens', 'temperature'] }),
    );
    t.is(said.text, REPLY);
    t.is(said.reasoning, 'The user asked, so an answer is due.');
    t.like(find(said, 'usage')[0], { usage: { completionTokens: 13, reasoningTokens: 8 } });
  }
});

test('every status has its error category before any output', async (t) => {
  const { chat, embed, draw } = await startRig(t);
  const failures = { 400: 'rejected', 401: 'auth', 404: 'missing', 429: 'rate_limited', 500: 'unavailable' };
  for (const [status, failure] of Object.entries(failures)) {
    const model = `gpt-sim+fail-${status}+retry-1500`;
    for (const stream of [true, false]) {
      const said = await listen(chat(model, stream));
      t.is(said.events.length, 0);
      t.like(getError(t, said), { failure, status: Number(status), retryAfterMs: 1500 });
    }
    const isThat = { instanceOf: UpstreamError };
    t.like(await t.throwsAsync(embed(model, ['a']), isThat), { failure, status: Number(status) });
    t.like(await t.throwsAsync(draw(model), isThat), { failure, status: Number(status) });
  }
});

test('a key that is unknown or without money is a key error', async (t) => {
  const { chat } = await startRig(t);
  t.is(getError(t, await listen(chat('gpt-sim+exhausted', true))).failure, 'auth');
  t.is(getError(t, await listen(chat('gpt-sim+revoked', true))).failure, 'auth');
});

test('no error contains the key that a vendor repeats', async (t) => {
  const { chat, embed } = await startRig(t);
  for (const model of [
    'fail-400+echokey',
    'fail-500+echokey',
    'revoked',
    'exhausted+echokey',
    'fail-422+echokey',
  ]) {
    const error = getError(t, await listen(chat(model, true)));
    t.false(`${error.message} ${error.stack} ${String(error.cause)}`.includes(KEY), model);
    const other = await t.throwsAsync(embed(model, ['a']));
    t.false(other.message.includes(KEY), model);
  }
});

test('a cut stream fails after its output; one that is cut after its end is complete', async (t) => {
  const { chat } = await startRig(t);
  const said = await listen(chat('gpt-sim+cut-3', true));
  t.is(said.text, 'You said:');
  t.is(getError(t, said).failure, 'unavailable');
  t.is(find(said, 'finish').length, 0);
  // Role, five words, finish: with 7 chunks only usage and the end marker are missing.
  const late = await listen(chat('gpt-sim+cut-7', true));
  t.is(late.error, null);
  t.is(late.text, REPLY);
  t.is(find(late, 'finish').length, 1);
  t.is(find(late, 'usage').length, 0);
});

test('a stream that is cut at any byte is either complete or an error', async (t) => {
  const { chat } = await startRig(t);
  for (let bytes = 0; bytes < 2600; bytes += 97) {
    const said = await listen(chat(`gpt-sim+cutbytes-${bytes}`, true));
    const hasFinished = find(said, 'finish').length === 1;
    t.is(said.error === null, hasFinished, `after ${bytes} bytes`);
    t.true(REPLY.startsWith(said.text));
    if (hasFinished) {
      t.is(said.text, REPLY);
    }
  }
});

test('an unstreamed response that is cut or invalid is unavailable', async (t) => {
  const { chat, embed, draw } = await startRig(t);
  const isUnavailable = { instanceOf: UpstreamError };
  for (const fault of ['cutbytes-20', 'garbage']) {
    t.is(getError(t, await listen(chat(`gpt-sim+${fault}`, false))).failure, 'unavailable');
    t.like(await t.throwsAsync(embed(`emb+${fault}`, ['a']), isUnavailable), { failure: 'unavailable' });
    t.like(await t.throwsAsync(draw(`dall-e-3+${fault}`), isUnavailable), { failure: 'unavailable' });
  }
  t.is(getError(t, await listen(chat('gpt-sim+garbage', true))).failure, 'unavailable');
});

test('a stream without end marker or without finish is complete, without both it is an error', async (t) => {
  const { chat } = await startRig(t);
  for (const fault of ['nomark', 'nofinish']) {
    const said = await listen(chat(`gpt-sim+${fault}`, true));
    t.is(said.error, null, fault);
    t.is(said.text, REPLY);
    t.is(find(said, 'finish').length, 1);
    t.is(find(said, 'usage').at(-1)?.isPartial, undefined);
  }
  const error = getError(t, await listen(chat('gpt-sim+noend', true)));
  t.is(error.failure, 'unavailable');
  t.regex(error.message, /ended without an end/);
});

test('usage is found on any chunk, and may be missing', async (t) => {
  const { chat } = await startRig(t);
  for (const fault of ['firstusage', 'everyusage', 'finishusage', 'duplicates', 'everyusage+duplicates']) {
    const said = await listen(chat(`gpt-sim+${fault}`, true));
    t.is(said.error, null);
    t.is(said.text, REPLY, fault);
    t.is(find(said, 'finish').length, 1);
    t.like(find(said, 'usage'), [{ usage: { promptTokens: 3, completionTokens: 5 } }]);
  }
  for (const stream of [true, false]) {
    t.is(find(await listen(chat('gpt-sim+nousage', stream)), 'usage').length, 0);
  }
});

test('an error event within a stream follows the earlier output', async (t) => {
  const { chat } = await startRig(t);
  const said = await listen(chat('gpt-sim+streamerror-3', true));
  t.is(said.text, 'You said:');
  t.is(getError(t, said).failure, 'unavailable');
});

test('a vendor that is silent before or during its response times out', async (t) => {
  const { chat, embed } = await startRig(t, {}, { firstByteMs: 500, betweenChunksMs: 500 });
  t.is(getError(t, await listen(chat('gpt-sim+slow-5000', true))).failure, 'timeout');
  t.is(getError(t, await listen(chat('gpt-sim+hang', true))).failure, 'timeout');
  t.is(getError(t, await listen(chat('gpt-sim+hang', false))).failure, 'timeout');
  t.like(await t.throwsAsync(embed('emb+slow-5000', ['a'])), { failure: 'timeout' });
  const said = await listen(chat('gpt-sim+stall-3', true));
  t.is(said.text, 'You said:');
  t.is(getError(t, said).failure, 'timeout');
});

test('a slow but steady stream may take longer than the timeouts for silence', async (t) => {
  // Longer in total than either timeout, on a busy machine too.
  const { chat } = await startRig(t, { replyWords: 30 }, { firstByteMs: 2_000, betweenChunksMs: 2_000 });
  const said = await listen(chat('gpt-sim+drip-100', true));
  t.is(said.error, null);
  t.is(said.text.split(' ').length, 30);
});

test.serial(
  'when the caller disconnects, the call is aborted before its response, with the caller’s reason',
  async (t) => {
    const { chat, simulator } = await startRig(t);
    for (const model of ['gpt-sim+slow-5000', 'gpt-sim+stall-2', 'gpt-sim+hang', 'gpt-sim+drip-200']) {
      const controller = new AbortController();
      const reason = new Error('the caller left');
      const listening = listen(chat(model, true, { signal: controller.signal }));
      const entry = await simulator.requests.waitFor((request) => request.model === model);
      const over = simulator.requests.waitFor((request) => request === entry && request.isOver);
      controller.abort(reason);
      t.is((await listening).error, reason, model);
      t.true((await over).isAborted, model);
    }
  },
);

test.serial('a caller that stops reading without an abort cancels the vendor call too', async (t) => {
  const { chat, simulator } = await startRig(t);
  for await (const event of chat('gpt-sim+drip-200', true)) {
    t.is(event.type, 'delta');
    break;
  }
  const entry = await simulator.requests.waitFor((request) => request.isOver);
  t.true(entry.isAborted);
});

test('an unstreamed response to a streamed request is accepted', async (t) => {
  const { chat } = await startRig(t);
  const said = await listen(chat('gpt-sim', true, { drops: ['stream', 'stream_options'] }));
  t.is(said.text, REPLY);
  t.is(find(said, 'usage').length, 1);
});

test('vectors are in the order of their inputs, the same from base64 and from numbers', async (t) => {
  const { embed } = await startRig(t);
  const inputs = ['one two', 'three', 'four'];
  for (const model of ['emb', 'emb+floats']) {
    const answer = await embed(model, inputs);
    t.is(answer.dimensions, 1536);
    t.is(answer.promptTokens, 4);
    const expected = inputs.map((input) => Buffer.from(deriveVector(input, 1536).buffer));
    t.true(answer.vectors.equals(Buffer.concat(expected)), model);
  }
  const short = await embed('emb', ['a'], 8);
  t.is(short.dimensions, 8);
  t.true(short.vectors.equals(Buffer.from(deriveVector('a', 8).buffer)));
  t.is((await embed('emb+nousage', ['a'])).promptTokens, null);
});

test('a batch with a text that the vendor rejects is rejected as a whole', async (t) => {
  const { embed } = await startRig(t, { faults: parseFaultWords('poison') });
  t.like(await t.throwsAsync(embed('emb', ['a', 'some poison here', 'b'])), { failure: 'rejected' });
  t.is((await embed('emb', ['a', 'b'])).promptTokens, 2);
});

test('the largest valid response is accepted', async (t) => {
  const { embed } = await startRig(t, { vectors: 'fast', logCapacity: 0 });
  const answer = await embed('emb', Array.from<string>({ length: 2048 }).fill('a b'), 3072);
  t.is(answer.vectors.length, 2048 * 3072 * 4);
  t.is(answer.promptTokens, 4096);
  const first = answer.vectors.subarray(0, 3072 * 4);
  t.true(first.equals(answer.vectors.subarray(-3072 * 4)));
});

test('images are returned as image bytes, whatever the model family', async (t) => {
  const { draw, simulator } = await startRig(t);
  for (const model of ['dall-e-3', 'gpt-image-sim']) {
    const { images } = await draw(model, 2);
    t.is(images.length, 2);
    for (const image of images) {
      t.is(image.contentType, 'image/png');
      t.like(await sharp(image.bytes).metadata(), { format: 'png', width: 64, height: 64 });
      t.is(image.revisedPrompt, 'A picture of: a cat\n\nAvoid: dogs.');
    }
  }
  t.deepEqual(
    simulator.requests.entries.map(({ body }) => [body?.['response_format'], body?.['n']]),
    [
      ['b64_json', 1],
      ['b64_json', 1],
      [undefined, 2],
    ],
  );
});

test('of a hundred concurrent calls each gets its own response', async (t) => {
  const { chat } = await startRig(t);
  const runs = Array.from({ length: 100 }, async (_, index) => {
    const body: ChatBody = { messages: [{ role: 'user', content: `number ${index}` }] };
    t.is((await listen(chat('gpt-sim', true, { body }))).text, `You said: number ${index}`);
  });
  await Promise.all(runs);
});
