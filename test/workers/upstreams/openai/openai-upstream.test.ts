import test, { type ExecutionContext } from 'ava';
import sharp from 'sharp';

import { parseFaultWords } from '../../../../scripts/vendor-simulator/faults.ts';
import {
  startVendorSimulator,
  type VendorSimulator,
  type VendorSimulatorOptions,
} from '../../../../scripts/vendor-simulator/simulator.ts';
import { deriveVector } from '../../../../scripts/vendor-simulator/vectors.ts';
import { flattenEvents } from '../../../support/chat-events.ts';
import { ScriptedRefusal, startScriptedVendor, unstreamedChat } from '../../../support/scripted-vendor.ts';
import { createContext, createImageCall, createTarget } from '../../../support/upstream-target.ts';
import { DEFAULT_HTTP_TIMEOUTS, type HttpTimeouts } from '../../../../workers/upstreams/http-client.ts';
import { createOpenAiUpstream } from '../../../../workers/upstreams/openai/openai-upstream.ts';
import {
  type CallContext,
  type ChatBody,
  type ChatEvent,
  type EmbeddingResponse,
  type ImageResponse,
  UpstreamError,
  type UpstreamTarget,
} from '../../../../workers/upstreams/upstream.ts';

const KEY = 'sk-sim-0123456789';
const CHAT_BODY: ChatBody = { messages: [{ role: 'user', content: 'hello there world' }] };
/** The simulator's reply to those messages. It bills one token per word. */
const REPLY = 'You said: hello there world';

interface Rig {
  readonly simulator: VendorSimulator;
  readonly chat: (
    model: string,
    stream: boolean,
    more?: Partial<CallContext & { body: ChatBody; drops: string[] }>,
  ) => ChatRun;
  readonly embed: (model: string, inputs: string[], dimensions?: number) => Promise<EmbeddingResponse>;
  readonly draw: (model: string, n?: number) => Promise<ImageResponse>;
}

type ChatRun = AsyncIterable<ChatEvent>;

interface Collected {
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
    chat: (model, stream, { body = CHAT_BODY, drops = [], ...more } = {}) =>
      flattenEvents(upstream.chat(target(model, drops), body, stream, { ...createContext(), ...more })),
    embed: (model, inputs, dimensions) =>
      upstream.embed(target(model), { inputs, dimensions: dimensions ?? null, user: null }, createContext()),
    draw: (model, n = 1) =>
      upstream.generateImages(target(model), createImageCall({ negativePrompt: 'dogs', n }), createContext()),
  };
}

async function collect(run: ChatRun): Promise<Collected> {
  const collected: Collected = { text: '', reasoning: '', events: [], error: null };
  try {
    for await (const event of run) {
      collected.events.push(event);
      if (event.type === 'delta') {
        collected.text += typeof event.delta['content'] === 'string' ? event.delta['content'] : '';
        const { reasoning_content } = event.delta;
        collected.reasoning += typeof reasoning_content === 'string' ? reasoning_content : '';
      }
    }
  } catch (error) {
    collected.error = error;
  }
  return collected;
}

function find<Type extends ChatEvent['type']>(
  collected: Collected,
  type: Type,
): Extract<ChatEvent, { type: Type }>[] {
  return collected.events.filter((event): event is Extract<ChatEvent, { type: Type }> => event.type === type);
}

function getError(t: ExecutionContext, collected: Collected): UpstreamError {
  t.true(collected.error instanceof UpstreamError, String(collected.error));
  return collected.error as UpstreamError;
}

test('a chat has the same text and usage, streamed or not', async (t) => {
  const { chat, simulator } = await startRig(t);
  for (const stream of [true, false]) {
    const collected = await collect(chat('gpt-sim', stream));
    t.is(collected.error, null);
    t.is(collected.text, REPLY);
    t.deepEqual(find(collected, 'finish'), [
      { type: 'finish', index: 0, finishReason: 'stop', nativeFinishReason: 'stop' },
    ]);
    t.like(find(collected, 'usage')[0], { usage: { promptTokens: 3, completionTokens: 5, cachedTokens: 0 } });
    t.is(find(collected, 'usage').length, 1);
  }
  const [first] = simulator.requests.entries;
  t.is(first?.key, KEY);
  t.is(first?.headers['content-type'], 'application/json');
  t.deepEqual(first?.body, {
    model: 'gpt-sim',
    messages: CHAT_BODY.messages,
    stream: true,
    stream_options: { include_usage: true },
  });
});

test('the token limit, several choices and log probabilities are honoured', async (t) => {
  const { chat } = await startRig(t);
  for (const stream of [true, false]) {
    const collected = await collect(
      chat('gpt-sim', stream, { body: { ...CHAT_BODY, max_tokens: 2, n: 2, logprobs: true } }),
    );
    t.is(collected.error, null);
    t.deepEqual(
      find(collected, 'finish').map((finish) => [finish.index, finish.finishReason]),
      [
        [0, 'length'],
        [1, 'length'],
      ],
    );
    t.like(find(collected, 'usage')[0], { usage: { completionTokens: 4 } });
    t.true(find(collected, 'delta').some((event) => event.logprobs !== undefined));
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
    const collected = await collect(chat('gpt-sim-parallel', stream, { body: { ...CHAT_BODY, tools } }));
    t.is(collected.error, null);
    const calls: { id: string; name: string; arguments: string }[] = [];
    for (const { delta } of find(collected, 'delta')) {
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
    t.is(find(collected, 'finish')[0]?.finishReason, 'tool_calls');
  }
});

interface ToolCallPiece {
  readonly index: number;
  readonly id?: string;
  readonly function: { readonly name?: string; readonly arguments: string };
}

test('a reasoning model works if the route drops the fields that it rejects', async (t) => {
  const { chat } = await startRig(t);
  const body = { ...CHAT_BODY, max_tokens: 50, temperature: 0.7 };
  const refused = getError(t, await collect(chat('gpt-sim-reasoner', true, { body })));
  t.is(refused.failure, 'rejected');
  t.regex(refused.message, /max_tokens/);
  for (const stream of [true, false]) {
    const collected = await collect(
      chat('gpt-sim-reasoner', stream, { body, drops: ['max_tokens', 'temperature'] }),
    );
    t.is(collected.text, REPLY);
    t.is(collected.reasoning, 'The user asked, so an answer is due.');
    t.like(find(collected, 'usage')[0], { usage: { completionTokens: 13, reasoningTokens: 8 } });
  }
});

test('every status before any output maps to its failure kind', async (t) => {
  const { chat, embed, draw } = await startRig(t);
  const failures = { 400: 'rejected', 401: 'auth', 404: 'missing', 429: 'rate_limited', 500: 'unavailable' };
  for (const [status, failure] of Object.entries(failures)) {
    const model = `gpt-sim+fail-${status}+retry-1500`;
    for (const stream of [true, false]) {
      const collected = await collect(chat(model, stream));
      t.is(collected.events.length, 0);
      t.like(getError(t, collected), { failure, status: Number(status), retryAfterMs: 1500 });
    }
    const expectation = { instanceOf: UpstreamError };
    t.like(await t.throwsAsync(embed(model, ['a']), expectation), { failure, status: Number(status) });
    t.like(await t.throwsAsync(draw(model), expectation), { failure, status: Number(status) });
  }
});

test('an exhausted or unknown key is an auth failure', async (t) => {
  const { chat } = await startRig(t);
  t.is(getError(t, await collect(chat('gpt-sim+exhausted', true))).failure, 'auth');
  t.is(getError(t, await collect(chat('gpt-sim+revoked', true))).failure, 'auth');
});

test('no error ever contains the key that a vendor echoes', async (t) => {
  const { chat, embed } = await startRig(t);
  for (const model of [
    'fail-400+echokey',
    'fail-500+echokey',
    'revoked',
    'exhausted+echokey',
    'fail-422+echokey',
  ]) {
    const error = getError(t, await collect(chat(model, true)));
    t.false(`${error.message} ${error.stack} ${String(error.cause)}`.includes(KEY), model);
    const other = await t.throwsAsync(embed(model, ['a']));
    t.false(other.message.includes(KEY), model);
  }
});

test('a stream that is cut off yields the received output and then fails; if it is cut off after its finish, it is complete', async (t) => {
  const { chat } = await startRig(t);
  const collected = await collect(chat('gpt-sim+cut-3', true));
  t.is(collected.text, 'You said:');
  t.is(getError(t, collected).failure, 'unavailable');
  t.is(find(collected, 'finish').length, 0);
  // Role, five words, finish: with 7 chunks only usage and the end mark are missing.
  const late = await collect(chat('gpt-sim+cut-7', true));
  t.is(late.error, null);
  t.is(late.text, REPLY);
  t.is(find(late, 'finish').length, 1);
  t.is(find(late, 'usage').length, 0);
});

test('a stream cut off at any byte is either complete or an error', async (t) => {
  const { chat } = await startRig(t);
  for (let bytes = 0; bytes < 2600; bytes += 97) {
    const collected = await collect(chat(`gpt-sim+cutbytes-${bytes}`, true));
    const hasFinished = find(collected, 'finish').length === 1;
    t.is(collected.error === null, hasFinished, `after ${bytes} bytes`);
    t.true(REPLY.startsWith(collected.text));
    if (hasFinished) {
      t.is(collected.text, REPLY);
    }
  }
});

test('a non-streamed response that is cut off or invalid is an unavailable failure', async (t) => {
  const { chat, embed, draw } = await startRig(t);
  const expectation = { instanceOf: UpstreamError };
  for (const fault of ['cutbytes-20', 'garbage']) {
    t.is(getError(t, await collect(chat(`gpt-sim+${fault}`, false))).failure, 'unavailable');
    t.like(await t.throwsAsync(embed(`emb+${fault}`, ['a']), expectation), { failure: 'unavailable' });
    t.like(await t.throwsAsync(draw(`dall-e-3+${fault}`), expectation), { failure: 'unavailable' });
  }
  t.is(getError(t, await collect(chat('gpt-sim+garbage', true))).failure, 'unavailable');
});

test('a stream that lacks the end mark or the finish is complete; one that lacks both is an error', async (t) => {
  const { chat } = await startRig(t);
  for (const fault of ['nomark', 'nofinish']) {
    const collected = await collect(chat(`gpt-sim+${fault}`, true));
    t.is(collected.error, null, fault);
    t.is(collected.text, REPLY);
    t.is(find(collected, 'finish').length, 1);
    t.is(find(collected, 'usage').at(-1)?.isPartial, undefined);
  }
  const error = getError(t, await collect(chat('gpt-sim+noend', true)));
  t.is(error.failure, 'unavailable');
  t.regex(error.message, /ended before it was complete/);
});

test('usage is found on any chunk, and may be missing', async (t) => {
  const { chat } = await startRig(t);
  for (const fault of ['firstusage', 'everyusage', 'finishusage', 'duplicates', 'everyusage+duplicates']) {
    const collected = await collect(chat(`gpt-sim+${fault}`, true));
    t.is(collected.error, null);
    t.is(collected.text, REPLY, fault);
    t.is(find(collected, 'finish').length, 1);
    t.like(find(collected, 'usage'), [{ usage: { promptTokens: 3, completionTokens: 5 } }]);
  }
  for (const stream of [true, false]) {
    t.is(find(await collect(chat('gpt-sim+nousage', stream)), 'usage').length, 0);
  }
});

test('an error event within a stream follows the output before it', async (t) => {
  const { chat } = await startRig(t);
  const collected = await collect(chat('gpt-sim+streamerror-3', true));
  t.is(collected.text, 'You said:');
  t.is(getError(t, collected).failure, 'unavailable');
});

test('a vendor that is silent before or during its response times out', async (t) => {
  const { chat, embed } = await startRig(t, {}, { firstByteMs: 500, betweenChunksMs: 500 });
  t.is(getError(t, await collect(chat('gpt-sim+slow-5000', true))).failure, 'timeout');
  t.is(getError(t, await collect(chat('gpt-sim+hang', true))).failure, 'timeout');
  t.is(getError(t, await collect(chat('gpt-sim+hang', false))).failure, 'timeout');
  t.like(await t.throwsAsync(embed('emb+slow-5000', ['a'])), { failure: 'timeout' });
  const collected = await collect(chat('gpt-sim+stall-3', true));
  t.is(collected.text, 'You said:');
  t.is(getError(t, collected).failure, 'timeout');
});

test('a slow stream without long pauses does not run into the silence timeouts', async (t) => {
  // The whole stream takes longer than either timeout, but its pauses are much shorter, even on a busy machine.
  const { chat } = await startRig(t, { replyWords: 30 }, { firstByteMs: 2_000, betweenChunksMs: 2_000 });
  const collected = await collect(chat('gpt-sim+drip-100', true));
  t.is(collected.error, null);
  t.is(collected.text.split(' ').length, 30);
});

test.serial(
  'a cancelled call is cut off before its response ends, and fails with the caller’s reason',
  async (t) => {
    const { chat, simulator } = await startRig(t);
    for (const model of ['gpt-sim+slow-5000', 'gpt-sim+stall-2', 'gpt-sim+hang', 'gpt-sim+drip-200']) {
      const controller = new AbortController();
      const reason = new Error('the caller disconnected');
      const collecting = collect(chat(model, true, { signal: controller.signal }));
      const entry = await simulator.requests.waitFor((request) => request.model === model);
      const finished = simulator.requests.waitFor((request) => request === entry && request.isOver);
      controller.abort(reason);
      t.is((await collecting).error, reason, model);
      t.true((await finished).isAborted, model);
    }
  },
);

test.serial('a consumer that stops iterating cuts off the vendor call too', async (t) => {
  const { chat, simulator } = await startRig(t);
  for await (const event of chat('gpt-sim+drip-200', true)) {
    t.is(event.type, 'delta');
    break;
  }
  const entry = await simulator.requests.waitFor((request) => request.isOver);
  t.true(entry.isAborted);
});

test('a non-streamed response to a streamed request is accepted', async (t) => {
  const { chat } = await startRig(t);
  const collected = await collect(chat('gpt-sim', true, { drops: ['stream', 'stream_options'] }));
  t.is(collected.text, REPLY);
  t.is(find(collected, 'usage').length, 1);
});

test('vectors are in the order of their inputs, and the same from base64 and from numbers', async (t) => {
  const { embed } = await startRig(t);
  const inputs = ['one two', 'three', 'four'];
  for (const model of ['emb', 'emb+floats']) {
    const response = await embed(model, inputs);
    t.is(response.dimensions, 1536);
    t.is(response.promptTokens, 4);
    const expected = inputs.map((input) => Buffer.from(deriveVector(input, 1536).buffer));
    t.true(response.vectors.equals(Buffer.concat(expected)), model);
  }
  const short = await embed('emb', ['a'], 8);
  t.is(short.dimensions, 8);
  t.true(short.vectors.equals(Buffer.from(deriveVector('a', 8).buffer)));
  t.is((await embed('emb+nousage', ['a'])).promptTokens, null);
});

test('if the vendor rejects one text, the whole batch is rejected', async (t) => {
  const { embed } = await startRig(t, { faults: parseFaultWords('poison') });
  t.like(await t.throwsAsync(embed('emb', ['a', 'some poison here', 'b'])), { failure: 'rejected' });
  t.is((await embed('emb', ['a', 'b'])).promptTokens, 2);
});

test('the largest valid response is accepted', async (t) => {
  const { embed } = await startRig(t, { vectors: 'fast', logCapacity: 0 });
  const response = await embed('emb', Array.from<string>({ length: 2048 }).fill('a b'), 3072);
  t.is(response.vectors.length, 2048 * 3072 * 4);
  t.is(response.promptTokens, 4096);
  const first = response.vectors.subarray(0, 3072 * 4);
  t.true(first.equals(response.vectors.subarray(-3072 * 4)));
});

test('images are returned as image bytes for every model family', async (t) => {
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

test('a hundred parallel calls each get their own response', async (t) => {
  const { chat } = await startRig(t);
  const runs = Array.from({ length: 100 }, async (_, index) => {
    const body: ChatBody = { messages: [{ role: 'user', content: `number ${index}` }] };
    t.is((await collect(chat('gpt-sim', true, { body }))).text, `You said: number ${index}`);
  });
  await Promise.all(runs);
});

/** A server that refuses requests for which `refuse` returns a message. */
async function startRefusing(
  t: ExecutionContext,
  refuse: (body: Readonly<Record<string, unknown>>) => string | null,
): Promise<{
  readonly bodies: Record<string, unknown>[];
  readonly upstream: ReturnType<typeof createOpenAiUpstream>;
}> {
  const bodies: Record<string, unknown>[] = [];
  const server = await startScriptedVendor((body) => {
    bodies.push(body);
    const message = refuse(body);
    if (message !== null)
      return new ScriptedRefusal(400, { error: { message, type: 'invalid_request_error' } });
    return 'input' in body ? { data: [{ embedding: [1, 2], index: 0 }] } : unstreamedChat;
  });
  const upstream = createOpenAiUpstream({ baseUrl: `${server.url}/v1`, timeouts: DEFAULT_HTTP_TIMEOUTS });
  t.teardown(async () => {
    await upstream.close();
    await server.close();
  });
  return { bodies, upstream };
}

const runChat = async (
  upstream: ReturnType<typeof createOpenAiUpstream>,
  body: object,
  isTemperatureAdded: boolean,
): Promise<void> => {
  const context = { ...createContext(), isTemperatureAdded };
  const { error } = await collect(
    flattenEvents(upstream.chat(createTarget('m'), { ...CHAT_BODY, ...body }, false, context)),
  );
  if (error !== null) throw error as Error;
};

test('a field that the gateway added and a server refuses is left out, from then on without another call', async (t) => {
  const { bodies, upstream } = await startRefusing(t, (body) =>
    'temperature' in body
      ? "Unsupported value: 'temperature' does not support 0.7 with this model."
      : 'max_tokens' in body
        ? "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
        : null,
  );
  for (let i = 0; i < 2; i++) await runChat(upstream, { temperature: 0.7, max_tokens: 50 }, true);
  t.is(bodies.length, 3 + 1);
  t.like(bodies.at(-1), { max_completion_tokens: 50, temperature: undefined, max_tokens: undefined });
  const error = await t.throwsAsync(runChat(upstream, { temperature: 0.7, max_tokens: 50 }, false));
  t.regex(error?.message ?? '', /does not support 0.7/, 'the caller’s own');
});

test('embeddings are requested as numbers from a server that refuses base64', async (t) => {
  const { bodies, upstream } = await startRefusing(t, (body) =>
    'encoding_format' in body ? "encoding_format 'base64' is not supported" : null,
  );
  const embed = async () =>
    await upstream.embed(createTarget('m'), { inputs: ['a'], dimensions: null, user: null }, createContext());
  for (let i = 0; i < 2; i++) t.is((await embed()).dimensions, 2);
  t.deepEqual(
    bodies.map((body) => body['encoding_format']),
    ['base64', undefined, undefined],
  );
});

test('a refusal that only quotes a field changes nothing for later requests', async (t) => {
  const { bodies, upstream } = await startRefusing(t, (body) =>
    JSON.stringify(body['messages']).includes('bad') ? 'Invalid: temperature' : null,
  );
  await t.throwsAsync(
    runChat(upstream, { temperature: 0.7, messages: [{ role: 'user', content: 'bad' }] }, true),
  );
  await runChat(upstream, { temperature: 0.7 }, true);
  t.is(bodies.at(-1)!['temperature'], 0.7);
});
