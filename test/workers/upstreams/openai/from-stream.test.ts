import test from 'ava';
import * as fc from 'fast-check';

import { type ChatEvent, UpstreamError, type UpstreamUsage } from '../../../../workers/upstreams/upstream.ts';
import { createChatStreamTranslator } from '../../../../workers/upstreams/openai/from-stream.ts';
import { translatePieces, type ChatOutcome } from '../../../support/chat-events.ts';

const translate = (pieces: readonly Uint8Array[], choices = 1): ChatOutcome =>
  translatePieces(createChatStreamTranslator({ apiKey: 'sk-proj-1234567890', choices }), pieces);

function translateText(text: string, choices = 1): ChatOutcome {
  return translate([Buffer.from(text)], choices);
}

function toStream(...chunks: (object | string)[]): string {
  return chunks
    .map((chunk) => `data: ${typeof chunk === 'string' ? chunk : JSON.stringify(chunk)}\n\n`)
    .join('');
}

function toChunk(delta: object, finish: string | null = null, more: object = {}): object {
  return {
    id: 'x',
    object: 'chat.completion.chunk',
    choices: [{ index: 0, delta, finish_reason: finish }],
    ...more,
  };
}

function count(prompt: number, completion: number, more: Partial<UpstreamUsage> = {}): ChatEvent {
  return {
    type: 'usage',
    usage: {
      promptTokens: prompt,
      completionTokens: completion,
      cachedTokens: null,
      cacheWriteTokens: null,
      reasoningTokens: null,
      webSearchTokens: null,
      ...more,
    },
  };
}

function delta(fields: object, index = 0): ChatEvent {
  return { type: 'delta', index, delta: { ...fields } };
}

const STOP: ChatEvent = { type: 'finish', index: 0, finishReason: 'stop', nativeFinishReason: 'stop' };

/** Adapted from the streaming example of "Create chat completion" in the OpenAI API reference, with usage requested. */
const DOCUMENTED = `data: {"id":"chatcmpl-123","object":"chat.completion.chunk","created":1694268190,"model":"gpt-4o-mini","system_fingerprint":"fp_44709d6fcb","choices":[{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}],"usage":null}

data: {"id":"chatcmpl-123","object":"chat.completion.chunk","created":1694268190,"model":"gpt-4o-mini","system_fingerprint":"fp_44709d6fcb","choices":[{"index":0,"delta":{"content":"Grüße 👋"},"logprobs":null,"finish_reason":null}],"usage":null}

data: {"id":"chatcmpl-123","object":"chat.completion.chunk","created":1694268190,"model":"gpt-4o-mini","system_fingerprint":"fp_44709d6fcb","choices":[{"index":0,"delta":{},"logprobs":null,"finish_reason":"stop"}],"usage":null}

data: {"id":"chatcmpl-123","object":"chat.completion.chunk","created":1694268190,"model":"gpt-4o-mini","system_fingerprint":"fp_44709d6fcb","choices":[],"usage":{"prompt_tokens":19,"completion_tokens":10,"total_tokens":29,"prompt_tokens_details":{"cached_tokens":4,"audio_tokens":0},"completion_tokens_details":{"reasoning_tokens":3,"audio_tokens":0,"accepted_prediction_tokens":0,"rejected_prediction_tokens":0}}}

data: [DONE]

`;

const DOCUMENTED_EVENTS: ChatEvent[] = [
  delta({ role: 'assistant', content: '' }),
  delta({ content: 'Grüße 👋' }),
  STOP,
  count(19, 10, { cachedTokens: 4, reasoningTokens: 3 }),
];

test('the documented stream is translated, split at any byte', (t) => {
  const bytes = Buffer.from(DOCUMENTED);
  t.deepEqual(translate([bytes]), DOCUMENTED_EVENTS);
  for (let at = 1; at < bytes.length; at += 1) {
    t.deepEqual(translate([bytes.subarray(0, at), bytes.subarray(at)]), DOCUMENTED_EVENTS);
  }
  t.deepEqual(translate([...bytes].map((byte) => Uint8Array.of(byte))), DOCUMENTED_EVENTS);
});

/** Adapted from the function calling guide of the OpenAI API reference, streamed, with two calls in parallel. */
const TOOLS = toStream(
  toChunk({ role: 'assistant', content: null }),
  toChunk({
    tool_calls: [
      { index: 0, id: 'call_a', type: 'function', function: { name: 'get_weather', arguments: '' } },
    ],
  }),
  toChunk({ tool_calls: [{ index: 0, function: { arguments: '{"location"' } }] }),
  toChunk({ tool_calls: [{ index: 0, function: { arguments: ':"Paris"}' } }] }),
  toChunk({
    tool_calls: [{ index: 1, id: 'call_b', type: 'function', function: { name: 'get_time', arguments: '' } }],
  }),
  toChunk({ tool_calls: [{ index: 1, function: { arguments: '{}' } }] }),
  toChunk({}, 'tool_calls'),
  '[DONE]',
);

test('parallel tool calls pass unchanged, for any split of the stream', (t) => {
  const bytes = Buffer.from(TOOLS);
  const whole = translate([bytes]);
  t.deepEqual(whole.at(-1), {
    type: 'finish',
    index: 0,
    finishReason: 'tool_calls',
    nativeFinishReason: 'tool_calls',
  });
  t.deepEqual(
    whole[4],
    delta({
      tool_calls: [
        { index: 1, id: 'call_b', type: 'function', function: { name: 'get_time', arguments: '' } },
      ],
    }),
  );
  t.is(whole.length, 7);
  fc.assert(
    fc.property(fc.array(fc.nat({ max: bytes.length }), { maxLength: 10 }), (points) => {
      const sorted = [0, ...points, bytes.length].toSorted((a, b) => a - b);
      const pieces = sorted.slice(1).map((end, index) => bytes.subarray(sorted[index], end));
      t.deepEqual(translate(pieces), whole);
    }),
  );
});

test('usage is read from any chunk; the last value of each field applies, even if it is zero', (t) => {
  const usage = { prompt_tokens: 5, completion_tokens: 1 };
  const first = Object.assign(count(5, 1), { isPartial: true });
  const expected = [delta({ content: 'a' }), first, count(5, 2), STOP];
  t.deepEqual(
    translateText(
      toStream(
        toChunk({ content: 'a' }, null, { usage }),
        toChunk({}, 'stop', { usage: { completion_tokens: 2 } }),
        { choices: [], usage: null },
        '[DONE]',
      ),
    ),
    expected,
  );
  t.deepEqual(
    translateText(toStream(toChunk({ content: 'a' }), toChunk({}, 'stop', { x_groq: { usage } }))).slice(1),
    [count(5, 1), STOP],
  );
  const zeros = { prompt_tokens: 0, completion_tokens: 0, prompt_tokens_details: { cached_tokens: 0 } };
  t.deepEqual(
    translateText(toStream(toChunk({ content: 'a' }, 'stop', { usage }), { choices: [], usage: zeros })).at(
      -1,
    ),
    count(0, 0, { cachedTokens: 0 }),
  );
});

test('usage on every chunk is reported with each chunk, and is no longer partial once it has grown', (t) => {
  const counted = (prompt: number, completion: number): object => ({
    usage: { prompt_tokens: prompt, completion_tokens: completion },
  });
  const partial = (prompt: number, completion: number): ChatEvent =>
    Object.assign(count(prompt, completion), { isPartial: true });
  t.deepEqual(
    translateText(
      toStream(
        toChunk({ role: 'assistant', content: '' }, null, counted(5, 0)),
        // Hidden reasoning.
        { choices: [], ...counted(5, 4_000) },
        { choices: [], ...counted(5, 10_000) },
        toChunk({ content: 'a' }, null, counted(5, 10_001)),
        toChunk({}, 'stop', counted(5, 10_001)),
        '[DONE]',
      ),
    ),
    [
      delta({ role: 'assistant', content: '' }),
      partial(5, 0),
      count(5, 4_000),
      count(5, 10_000),
      delta({ content: 'a' }),
      count(5, 10_001),
      STOP,
    ],
  );
  // Placeholder zeros always stay partial.
  const zeros = counted(0, 0);
  t.deepEqual(
    translateText(
      toStream(
        toChunk({ content: 'a' }, null, zeros),
        toChunk({ content: 'b' }, null, zeros),
        toChunk({}, 'stop', zeros),
        {
          choices: [],
          ...counted(5, 2),
        },
      ),
    ),
    [delta({ content: 'a' }), partial(0, 0), delta({ content: 'b' }), STOP, count(5, 2)],
  );
});

test('usage followed by more output stays partial; repeated usage, or usage at the end, is final', (t) => {
  const usage = { usage: { prompt_tokens: 5, completion_tokens: 0 } };
  const partial = Object.assign(count(5, 0), { isPartial: true });
  const opening = toChunk({ role: 'assistant', content: '' }, null, usage);
  const openingEvents = [delta({ role: 'assistant', content: '' }), partial];
  t.deepEqual(translateText(toStream(opening, toChunk({ content: 'a' }), toChunk({}, 'stop'), '[DONE]')), [
    ...openingEvents,
    delta({ content: 'a' }),
    STOP,
  ]);
  t.deepEqual(
    translateText(toStream(opening, toChunk({ content: 'a' }), toChunk({}, 'stop', usage), '[DONE]')),
    [...openingEvents, delta({ content: 'a' }), STOP, count(5, 0)],
  );
  // Without a finish, the end mark finishes the stream.
  t.deepEqual(translateText(toStream(toChunk({ content: 'a' }), { choices: [], ...usage }, '[DONE]')), [
    delta({ content: 'a' }),
    partial,
    { type: 'finish', index: 0, finishReason: 'stop', nativeFinishReason: null },
    count(5, 0),
  ]);
});

test('usage after the end mark is ignored, and missing usage is not an error', (t) => {
  const late = { choices: [], usage: { prompt_tokens: 5, completion_tokens: 1 } };
  t.deepEqual(translateText(toStream(toChunk({ content: 'a' }, 'stop'), '[DONE]', late)), [
    delta({ content: 'a' }),
    STOP,
  ]);
});

test('either a finish or the end mark alone ends a stream', (t) => {
  t.deepEqual(translateText(toStream(toChunk({ content: 'a' }, 'stop'))), [delta({ content: 'a' }), STOP]);
  t.deepEqual(translateText(toStream(toChunk({ content: 'a' }), '[DONE]')), [
    delta({ content: 'a' }),
    { type: 'finish', index: 0, finishReason: 'stop', nativeFinishReason: null },
  ]);
});

test('a stream with neither a finish nor the end mark was cut off', (t) => {
  const whole = toStream(toChunk({ content: 'a' }), toChunk({ content: 'b' }));
  for (let length = 0; length <= whole.length; length += 1) {
    const error = translateText(whole.slice(0, length)).at(-1);
    t.true(error instanceof UpstreamError, `after ${length} bytes`);
    t.is((error as UpstreamError).failure, 'unavailable');
    t.regex((error as UpstreamError).message, /ended before it was complete/);
  }
});

test('a stream in which only one of two choices has finished was cut off', (t) => {
  const other = { choices: [{ index: 1, delta: { content: 'b' }, finish_reason: null }] };
  const error = translateText(toStream(toChunk({ content: 'a' }, 'stop'), other), 2).at(-1);
  t.regex((error as UpstreamError).message, /ended before it was complete/);
});

test('an end mark without output before it is an error', (t) => {
  t.regex((translateText('data: [DONE]\n\n')[0] as UpstreamError).message, /without choices/);
  const zeros = { choices: [], usage: { prompt_tokens: 0, completion_tokens: 0 } };
  t.true(translateText(toStream(zeros, '[DONE]')).at(-1) instanceof UpstreamError);
});

test('a stream with usage but no output is an empty response, even without a finish or the end mark', (t) => {
  const usage = { choices: [], usage: { prompt_tokens: 5, completion_tokens: 5_000 } };
  const finish = { type: 'finish', index: 0, finishReason: 'stop', nativeFinishReason: null };
  const partial = Object.assign(count(5, 5_000), { isPartial: true });
  const empty = delta({ role: 'assistant', content: '' });
  t.deepEqual(translateText(toStream(usage, '[DONE]')), [partial, empty, finish, count(5, 5_000)]);
  t.deepEqual(translateText(toStream(usage)), [partial, empty, finish, count(5, 5_000)]);
  const opening = toChunk({ role: 'assistant', content: '' });
  t.deepEqual(translateText(toStream(opening, usage)), [empty, partial, finish, count(5, 5_000)]);
  // Usage of the prompt alone: nothing was generated yet.
  const early = { choices: [], usage: { prompt_tokens: 5, completion_tokens: 0 } };
  t.true(translateText(toStream(opening, early)).at(-1) instanceof UpstreamError);
  // Output that was cut off is not a whole response, even with usage.
  t.true(translateText(toStream(usage, toChunk({ content: 'a' }))).at(-1) instanceof UpstreamError);
  t.true(translateText(toStream(toChunk({ content: 'a' }), usage)).at(-1) instanceof UpstreamError);
});

test('each choice has its own deltas and finish', (t) => {
  const choice = (index: number, content: string, finish: string | null): object => ({
    choices: [{ index, delta: { content }, finish_reason: finish }],
  });
  const outcome = translateText(
    toStream(choice(0, 'a', null), choice(1, 'b', 'length'), choice(0, 'c', 'content_filter'), '[DONE]'),
    2,
  );
  t.deepEqual(outcome, [
    delta({ content: 'a' }),
    delta({ content: 'b' }, 1),
    delta({ content: 'c' }),
    { type: 'finish', index: 0, finishReason: 'content_filter', nativeFinishReason: 'content_filter' },
    { type: 'finish', index: 1, finishReason: 'length', nativeFinishReason: 'length' },
  ]);
});

test('a repeated finish, usage or end mark is reported once', (t) => {
  const end = toChunk({}, 'stop');
  const usage = { choices: [], usage: { prompt_tokens: 1, completion_tokens: 1 } };
  t.deepEqual(
    translateText(toStream(toChunk({ content: 'a' }), end, end, usage, usage, '[DONE]', '[DONE]')),
    [delta({ content: 'a' }), STOP, count(1, 1)],
  );
});

test('an error within the stream follows the output before it, without the key', (t) => {
  const error = {
    error: { message: 'overloaded, key sk-proj-1234567890', type: 'server_error', code: null },
  };
  const outcome = translateText(
    toStream(toChunk({ content: 'a' }), error, toChunk({ content: 'b' }, 'stop')),
  );
  t.deepEqual(outcome[0], delta({ content: 'a' }));
  t.is(outcome.length, 2);
  t.is((outcome[1] as UpstreamError).failure, 'unavailable');
  t.is(
    (outcome[1] as UpstreamError).message,
    'the upstream responded with 500 (server_error): overloaded, key [redacted]',
  );
});

test('an event that is not a JSON object is an error', (t) => {
  for (const text of ['data: {nope}\n\n', 'data: "text"\n\n', 'data: [1]\n\n']) {
    const [error] = translateText(text);
    t.is((error as UpstreamError).failure, 'unavailable');
    t.false((error as UpstreamError).message.includes('nope'));
  }
});

test('log probabilities pass through', (t) => {
  const logprobs = { content: [{ token: 'a', logprob: -1, bytes: [97], top_logprobs: [] }], refusal: null };
  const outcome = translateText(
    toStream(
      { choices: [{ index: 0, delta: { content: 'a' }, logprobs, finish_reason: null }] },
      toChunk({}, 'stop'),
      '[DONE]',
    ),
  );
  t.deepEqual(outcome, [{ type: 'delta', index: 0, delta: { content: 'a' }, logprobs }, STOP]);
});

test('chunks without choices, comments and filter results yield no events', (t) => {
  const filter = { choices: [], prompt_filter_results: [{ prompt_index: 0 }] };
  t.deepEqual(
    translateText(`: OPENROUTER PROCESSING\n\n${toStream(filter, {}, toChunk({ content: 'a' }, 'stop'))}`),
    [delta({ content: 'a' }), STOP],
  );
});

test('an image of any size is accepted as one line', (t) => {
  const url = `data:image/png;base64,${'A'.repeat(10_000_000)}`;
  const images = [{ type: 'image_url', image_url: { url } }];
  const [delta] = translateText(
    toStream({ choices: [{ index: 0, delta: { images }, finish_reason: 'stop' }] }, '[DONE]'),
  );
  t.deepEqual(delta, { type: 'delta', index: 0, delta: { images } });
});
