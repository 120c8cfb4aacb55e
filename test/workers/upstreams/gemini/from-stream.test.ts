import test from 'ava';
import * as fc from 'fast-check';

import type { ResponseOptions } from '../../../../workers/upstreams/gemini/response-translator.ts';
import { createChatStreamTranslator } from '../../../../workers/upstreams/gemini/from-stream.ts';
import {
  type ChatEvent,
  noUpstreamUsage,
  UpstreamError,
  type UpstreamUsage,
} from '../../../../workers/upstreams/upstream.ts';
import { translatePieces, type ChatOutcome } from '../../../support/chat-events.ts';
import { dropEarlyUsage } from '../../../support/early-usage.ts';

const OPTIONS: ResponseOptions = { model: 'gemini-2.5-flash', apiKey: 'AIzaSy-1234567890', oneCall: false };

const translate = (pieces: readonly Uint8Array[], options: Partial<ResponseOptions> = {}): ChatOutcome =>
  dropEarlyUsage(translatePieces(createChatStreamTranslator({ ...OPTIONS, ...options }), pieces));

const translateText = (text: string, options: Partial<ResponseOptions> = {}): ChatOutcome =>
  translate([Buffer.from(text)], options);

/** Writes a stream as the server does: events are separated by CRLF CRLF. */
const toStream = (...chunks: object[]): string =>
  chunks.map((chunk) => `data: ${JSON.stringify(chunk)}\r\n\r\n`).join('');

const toChunk = (parts: object[], finishReason?: string, more: object = {}): object => ({
  candidates: [
    {
      content: { parts, role: 'model' },
      ...(finishReason === undefined ? {} : { finishReason }),
      index: 0,
      ...more,
    },
  ],
});

const delta = (fields: object, index = 0): ChatEvent => ({ type: 'delta', index, delta: { ...fields } });
const finish = (finishReason: string, nativeFinishReason: string, index = 0): ChatEvent =>
  ({ type: 'finish', index, finishReason, nativeFinishReason }) as ChatEvent;
const count = (usage: Partial<UpstreamUsage>): ChatEvent => ({
  type: 'usage',
  usage: { ...noUpstreamUsage, ...usage },
});
const STOP = finish('stop', 'STOP');

function getError(t: { true(value: boolean): unknown }, outcome: ChatOutcome): UpstreamError {
  const error = outcome.at(-1);
  t.true(error instanceof UpstreamError);
  return error as UpstreamError;
}

/** Translates a stream split at every byte, then byte by byte, and checks that the outcome is always the same. */
function checkSplits(
  t: { deepEqual(a: unknown, b: unknown): unknown },
  text: string,
  expected: ChatOutcome,
): void {
  const bytes = Buffer.from(text);
  const normalize = (outcome: ChatOutcome): unknown =>
    JSON.parse(JSON.stringify(outcome).replaceAll(/call_gw_[0-9a-f]{32}/g, 'call_gw_x'));
  const normalizedExpected = normalize(expected);
  t.deepEqual(normalize(translate([bytes])), normalizedExpected);
  for (let at = 1; at < bytes.length; at += 1) {
    t.deepEqual(normalize(translate([bytes.subarray(0, at), bytes.subarray(at)])), normalizedExpected);
  }
  t.deepEqual(normalize(translate([...bytes].map((byte) => Uint8Array.of(byte)))), normalizedExpected);
}

/**
 * Adapted from FirebaseExtended/vertexai-sdk-test-data, googleai/streaming-success-thinking-reply-thought-summary.txt,
 * with shorter texts and the separators as the server sends them.
 */
const THINKING = toStream(
  {
    candidates: [
      {
        content: {
          parts: [{ text: '**Exploring Sky Color**\n\nGrüße 👋\n\n\n', thought: true }],
          role: 'model',
        },
        index: 0,
      },
    ],
    usageMetadata: {
      promptTokenCount: 10,
      totalTokenCount: 80,
      promptTokensDetails: [{ modality: 'TEXT', tokenCount: 10 }],
      thoughtsTokenCount: 70,
    },
    modelVersion: 'gemini-2.5-flash',
    responseId: '0J-HaJetAqv0jrEPwu-tsQ0',
  },
  {
    candidates: [{ content: { parts: [{ text: 'The sky is blue.' }], role: 'model' }, index: 0 }],
    usageMetadata: {
      promptTokenCount: 10,
      candidatesTokenCount: 22,
      totalTokenCount: 572,
      thoughtsTokenCount: 540,
    },
  },
  {
    candidates: [
      { content: { parts: [{ text: ' Blue scatters.' }], role: 'model' }, finishReason: 'STOP', index: 0 },
    ],
    usageMetadata: {
      promptTokenCount: 10,
      candidatesTokenCount: 48,
      totalTokenCount: 598,
      thoughtsTokenCount: 540,
    },
    modelVersion: 'gemini-2.5-flash',
  },
);

test('a recorded stream with thoughts is translated, split at any byte', (t) => {
  checkSplits(t, THINKING, [
    delta({ role: 'assistant', reasoning_content: '**Exploring Sky Color**\n\nGrüße 👋\n\n\n' }),
    delta({ content: 'The sky is blue.' }),
    delta({ content: ' Blue scatters.' }),
    STOP,
    count({ promptTokens: 10, completionTokens: 588, reasoningTokens: 540 }),
  ]);
});

/** Adapted from googleai/streaming-success-thinking-function-call-thought-summary-signature.txt, shortened. */
const CALLING = toStream(
  {
    candidates: [
      { content: { parts: [{ text: '**Calculating**', thought: true }], role: 'model' }, index: 0 },
    ],
    usageMetadata: { promptTokenCount: 38, totalTokenCount: 106, thoughtsTokenCount: 68 },
  },
  {
    candidates: [
      {
        content: {
          parts: [
            { functionCall: { name: 'now', args: {} }, thoughtSignature: 'CiIBVKhc7vB+vaaq6rA/KC79Ts7i' },
            { functionCall: { name: 'add', args: { days: 1, to: 'é' }, id: 'given-1' } },
          ],
          role: 'model',
        },
        finishReason: 'STOP',
        index: 0,
      },
    ],
    usageMetadata: {
      promptTokenCount: 38,
      candidatesTokenCount: 6,
      totalTokenCount: 212,
      thoughtsTokenCount: 168,
    },
    modelVersion: 'gemini-2.5-flash',
  },
);

test('tool calls arrive whole, each with index and id, and their signature is reported and remembered', (t) => {
  const thoughtSignature = 'CiIBVKhc7vB+vaaq6rA/KC79Ts7i';
  const id = `call_gw_${'0'.repeat(32)}`;
  const expected: ChatOutcome = [
    delta({ role: 'assistant', reasoning_content: '**Calculating**' }),
    delta({
      tool_calls: [
        {
          index: 0,
          id,
          type: 'function',
          function: { name: 'now', arguments: '{}' },
          extra_content: { google: { thought_signature: thoughtSignature } },
        },
      ],
    }),
    {
      type: 'remember',
      index: 0,
      toolCallId: id,
      value: { kind: 'gemini', model: 'models/gemini-2.5-flash', thoughtSignature },
    },
    delta({
      tool_calls: [
        {
          index: 1,
          id: 'given-1',
          type: 'function',
          function: { name: 'add', arguments: '{"days":1,"to":"é"}' },
        },
      ],
    }),
    finish('tool_calls', 'STOP'),
    count({ promptTokens: 38, completionTokens: 174, reasoningTokens: 168 }),
  ];
  checkSplits(t, CALLING, expected);
});

test('a generated call id is the same in the delta and in the remembered value, and new for each response', (t) => {
  const ids = [translateText(CALLING), translateText(CALLING)].map((outcome) => {
    const remember = outcome.find((event) => 'type' in event && event.type === 'remember');
    const call = outcome.find(
      (event) => 'type' in event && event.type === 'delta' && 'tool_calls' in event.delta,
    );
    const id = (remember as { toolCallId: string }).toolCallId;
    t.true(JSON.stringify(call).includes(id));
    t.regex(id, /^call_gw_[0-9a-f]{32}$/);
    return id;
  });
  t.not(ids[0], ids[1]);
});

test('later tool calls are dropped if one at a time is requested', (t) => {
  const calls = (outcome: ChatOutcome): number =>
    outcome.filter((event) => 'type' in event && event.type === 'delta' && 'tool_calls' in event.delta)
      .length;
  t.is(calls(translateText(CALLING)), 2);
  const outcome = translateText(CALLING, { oneCall: true });
  t.is(calls(outcome), 1);
  t.deepEqual(outcome.at(-2), finish('tool_calls', 'STOP'));
});

/** Adapted from googleai/streaming-success-empty-parts.txt, shortened. */
const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVQImWNwav0CAALIAbzDqqRyAAAAAElFTkSuQmCC';
const DRAWING = toStream(
  {
    candidates: [{ content: { parts: [{ text: "Here's a" }], role: 'model' } }],
    usageMetadata: { promptTokenCount: 16, candidatesTokenCount: 4, totalTokenCount: 20 },
  },
  { candidates: [{ content: { role: 'model' } }], usageMetadata: { promptTokenCount: 16 } },
  {
    candidates: [
      {
        content: { parts: [{ inlineData: { mimeType: 'image/png', data: PNG } }], role: 'model' },
        finishReason: 'STOP',
      },
    ],
    usageMetadata: { promptTokenCount: 16, candidatesTokenCount: 1307, totalTokenCount: 1323 },
  },
);

test('an image within the text is one of the images of the response', (t) => {
  checkSplits(t, DRAWING, [
    delta({ role: 'assistant', content: "Here's a" }),
    delta({ images: [{ type: 'image_url', image_url: { url: `data:image/png;base64,${PNG}` } }] }),
    STOP,
    count({ promptTokens: 16, completionTokens: 1307 }),
  ]);
});

test('an image of many megabytes is accepted, and an image among the thoughts is ignored', (t) => {
  const data = 'A'.repeat(8 * 1024 * 1024);
  const outcome = translateText(
    toStream(
      toChunk([{ inlineData: { mimeType: 'image/png', data: PNG }, thought: true }]),
      toChunk([{ inlineData: { mimeType: 'image/jpeg', data } }], 'STOP'),
    ),
  );
  t.is(outcome.length, 2);
  t.like(outcome[0], { delta: { images: [{ image_url: { url: `data:image/jpeg;base64,${data}` } }] } });
});

test('no split of a stream changes its events', (t) => {
  for (const text of [THINKING, CALLING.replace('"name":"now"', '"id":"x","name":"now"'), DRAWING]) {
    const bytes = Buffer.from(text);
    const whole = translate([bytes]);
    fc.assert(
      fc.property(fc.array(fc.nat({ max: bytes.length }), { maxLength: 10 }), (points) => {
        const sorted = [0, ...points, bytes.length].toSorted((a, b) => a - b);
        t.deepEqual(
          translate(sorted.slice(1).map((end, index) => bytes.subarray(sorted[index], end))),
          whole,
        );
      }),
    );
  }
});

test('a stream cut at any byte before the end of its last event is an error', (t) => {
  for (const text of [THINKING, DRAWING]) {
    const bytes = Buffer.from(text);
    const end = bytes.length - '\r\n\r\n'.length;
    for (let length = 0; length < end; length += 1) {
      const outcome = translate([bytes.subarray(0, length)]);
      t.is(getError(t, outcome).failure, 'unavailable', `after ${length} bytes`);
    }
    for (let length = end; length <= bytes.length; length += 1) {
      t.like(translate([bytes.subarray(0, length)]).at(-1), { type: 'usage' });
    }
  }
});

test('text after a finish is still emitted, and the finish is reported once', (t) => {
  const outcome = translateText(
    toStream(toChunk([{ text: 'a' }], 'STOP'), toChunk([{ text: 'b' }], 'STOP'), toChunk([])),
  );
  t.deepEqual(outcome, [delta({ role: 'assistant', content: 'a' }), delta({ content: 'b' }), STOP]);
});

test('a stream is finished only when every candidate has finished', (t) => {
  const translator = createChatStreamTranslator(OPTIONS);
  const push = (...chunks: object[]): void => translator.push(Buffer.from(toStream(...chunks)), []);
  t.false(translator.isFinished);
  push(toChunk([{ text: 'a' }]), { candidates: [{ index: 1, content: { parts: [{ text: 'b' }] } }] });
  push(toChunk([], 'STOP'));
  t.false(translator.isFinished);
  push({ candidates: [{ index: 1, finishReason: 'MAX_TOKENS' }] });
  t.true(translator.isFinished);
  t.false(translator.isDone);
  t.deepEqual(translator.end(), [STOP, finish('length', 'MAX_TOKENS', 1)]);
});

test('each candidate has its own deltas, role and finish', (t) => {
  const both = (parts: object[], finishReason?: string): object => ({
    candidates: [0, 1].map((index) => ({ index, content: { parts }, finishReason })),
  });
  t.deepEqual(translateText(toStream(both([{ text: 'a' }]), both([{ text: 'b' }], 'STOP'))), [
    delta({ role: 'assistant', content: 'a' }),
    delta({ role: 'assistant', content: 'a' }, 1),
    delta({ content: 'b' }),
    delta({ content: 'b' }, 1),
    STOP,
    finish('stop', 'STOP', 1),
  ]);
});

test('every finish reason is translated, and the vendor’s own is reported with it', (t) => {
  const reasons = {
    STOP: 'stop',
    MAX_TOKENS: 'length',
    CONTINUATION: 'length',
    SAFETY: 'content_filter',
    RECITATION: 'content_filter',
    BLOCKLIST: 'content_filter',
    PROHIBITED_CONTENT: 'content_filter',
    SPII: 'content_filter',
    IMAGE_SAFETY: 'content_filter',
    IMAGE_PROHIBITED_CONTENT: 'content_filter',
    IMAGE_RECITATION: 'content_filter',
    SOMETHING_NEW: 'length',
  };
  for (const [native, reason] of Object.entries(reasons)) {
    t.deepEqual(translateText(toStream(toChunk([{ text: 'a' }], native))).at(-1), finish(reason, native));
  }
  for (const native of ['OTHER', 'MALFORMED_RESPONSE', 'malformed-function-call']) {
    const error = getError(t, translateText(toStream(toChunk([{ text: 'a' }], native))));
    t.is(error.failure, 'unavailable', native);
  }
  const call = { functionCall: { name: 'f', id: 'x' } };
  t.deepEqual(translateText(toStream(toChunk([call], 'STOP'))).at(-1), finish('tool_calls', 'STOP'));
  t.deepEqual(translateText(toStream(toChunk([call], 'MAX_TOKENS'))).at(-1), finish('length', 'MAX_TOKENS'));
});

test('if a model fails before any output but reports usage, the response is empty', (t) => {
  for (const native of ['MALFORMED_FUNCTION_CALL', 'OTHER', 'SOMETHING_NEW']) {
    const usageMetadata = { promptTokenCount: 5, thoughtsTokenCount: 9, candidatesTokenCount: 2 };
    t.deepEqual(translateText(toStream({ ...toChunk([{ text: '' }], native), usageMetadata })), [
      delta({ role: 'assistant', content: '' }),
      finish(native === 'SOMETHING_NEW' ? 'length' : 'stop', native),
      count({ promptTokens: 5, completionTokens: 11, reasoningTokens: 9 }),
    ]);
  }
});

test('if a model fails before any output and reports no usage, that is an error, even after thoughts', (t) => {
  for (const native of [
    'MALFORMED_FUNCTION_CALL',
    'UNEXPECTED_TOOL_CALL',
    'OTHER',
    'NO_IMAGE',
    'SOMETHING_NEW',
  ]) {
    const error = getError(t, translateText(toStream(toChunk([{ text: 'hm', thought: true }], native))));
    t.is(error.failure, 'unavailable');
    t.true(error.isRequestFailure, 'the vendor’s server worked correctly');
    t.true(error.message.includes(native));
  }
});

test('an empty response with a valid finish is accepted, and starts with its role', (t) => {
  const empty = [delta({ role: 'assistant', content: '' }), finish('content_filter', 'SAFETY')];
  t.deepEqual(translateText(toStream({ candidates: [{ finishReason: 'SAFETY', index: 0 }] })), empty);
  const usageMetadata = { promptTokenCount: 5, thoughtsTokenCount: 9, totalTokenCount: 14 };
  t.deepEqual(translateText(toStream({ ...toChunk([{ text: '' }], 'MAX_TOKENS'), usageMetadata })), [
    delta({ role: 'assistant', content: '' }),
    finish('length', 'MAX_TOKENS'),
    count({ promptTokens: 5, completionTokens: 9, reasoningTokens: 9 }),
  ]);
});

test('an unspecified finish reason does not finish a stream', (t) => {
  const outcome = translateText(toStream(toChunk([{ text: 'a' }], 'FINISH_REASON_UNSPECIFIED')));
  t.is(getError(t, outcome).failure, 'unavailable');
});

/** Adapted from googleai/streaming-failure-prompt-blocked-safety.txt, which also ends with a single line break. */
test('a blocked prompt finishes the output so far, or gives an empty response', (t) => {
  const blocked = {
    promptFeedback: {
      blockReason: 'SAFETY',
      safetyRatings: [{ category: 'HARM_CATEGORY_HATE_SPEECH', probability: 'HIGH' }],
    },
  };
  const usageMetadata = { promptTokenCount: 7, totalTokenCount: 7 };
  const startedStream = `${toStream({ ...toChunk([{ text: 'text1' }]), usageMetadata })}data: ${JSON.stringify(blocked)}\n`;
  checkSplits(t, startedStream, [
    delta({ role: 'assistant', content: 'text1' }),
    finish('content_filter', 'SAFETY'),
    count({ promptTokens: 7 }),
  ]);
  t.deepEqual(translateText(toStream({ ...blocked, usageMetadata })), [
    delta({ role: 'assistant', content: '' }),
    finish('content_filter', 'SAFETY'),
    count({ promptTokens: 7, completionTokens: 0 }),
  ]);
});

test('the last value of each usage field applies; search tokens are part of the prompt, and thoughts of the completion', (t) => {
  const outcome = translateText(
    toStream(
      { ...toChunk([{ text: 'a' }]), usageMetadata: { promptTokenCount: 15, totalTokenCount: 15 } },
      {
        ...toChunk([], 'STOP'),
        usageMetadata: {
          promptTokenCount: 15,
          cachedContentTokenCount: 4,
          candidatesTokenCount: 102,
          toolUsePromptTokenCount: 424,
          thoughtsTokenCount: 142,
          totalTokenCount: 683,
        },
      },
      { usageMetadata: { candidatesTokenCount: 103 } },
    ),
  );
  t.deepEqual(
    outcome.at(-1),
    count({
      promptTokens: 439,
      completionTokens: 245,
      cachedTokens: 4,
      reasoningTokens: 142,
      webSearchTokens: 424,
    }),
  );
});

test('sources are reported as they arrive, each page once', (t) => {
  const ground = (...uris: string[]): object => ({
    groundingMetadata: {
      groundingChunks: [
        ...uris.map((uri) => ({ web: { uri, title: `of ${uri}` } })),
        { maps: {} },
        { web: {} },
      ],
    },
  });
  const outcome = translateText(
    toStream(
      toChunk([{ text: 'a' }], undefined, ground('u1')),
      toChunk([], 'STOP', ground('u1', 'u2', 'u2')),
      toChunk([]),
    ),
  );
  t.deepEqual(
    outcome.filter((event) => 'type' in event && event.type === 'sources'),
    [
      { type: 'sources', index: 0, sources: [{ url: 'u1', title: 'of u1' }] },
      { type: 'sources', index: 0, sources: [{ url: 'u2', title: 'of u2' }] },
    ],
  );
});

/** Names and shape as in LogprobsResult of the SDK's types. */
test('log probabilities accompany the text of their chunk, in OpenAI’s shape', (t) => {
  const logprobsResult = {
    chosenCandidates: [{ token: 'a', tokenId: 1, logProbability: -0.5 }, { token: 'b' }],
    topCandidates: [
      {
        candidates: [
          { token: 'a', logProbability: -0.5 },
          { token: 'c', logProbability: -2 },
        ],
      },
    ],
  };
  const token = (name: string, logprob: number): object => ({ token: name, logprob, bytes: null });
  const logprobs = {
    content: [
      { ...token('a', -0.5), top_logprobs: [token('a', -0.5), token('c', -2)] },
      { ...token('b', 0), top_logprobs: [] },
    ],
    refusal: null,
  };
  t.deepEqual(translateText(toStream(toChunk([{ text: 'a' }, { text: 'b' }], 'STOP', { logprobsResult }))), [
    delta({ role: 'assistant', content: 'a' }),
    { ...delta({ content: 'b' }), logprobs },
    STOP,
  ] as ChatEvent[]);
  t.deepEqual(translateText(toStream(toChunk([], 'STOP', { logprobsResult }))), [
    { ...delta({ role: 'assistant', content: '' }), logprobs },
    STOP,
  ] as ChatEvent[]);
});

/** An error as the server prints it after a 200: not an event, and over several lines. */
const BARE = `{
  "error": {
    "code": 503,
    "message": "The model is overloaded. Please try again later.",
    "status": "UNAVAILABLE"
  }
}
`;

test('an error sent as bare JSON in the stream follows the output before it, split at any byte', (t) => {
  for (const bare of [BARE, `[${BARE}]`, BARE.replaceAll(/\s+/g, ' ')]) {
    const text = toStream(toChunk([{ text: 'a' }])) + bare;
    const bytes = Buffer.from(text);
    const splits = Array.from({ length: bytes.length }, (_, at) => [
      bytes.subarray(0, at),
      bytes.subarray(at),
    ]);
    for (const split of [...splits, [...bytes].map((byte) => Uint8Array.of(byte))]) {
      const outcome = translate(split);
      t.deepEqual(outcome[0], delta({ role: 'assistant', content: 'a' }));
      const error = getError(t, outcome);
      t.like(error, { failure: 'unavailable', status: 503 });
      t.regex(error.message, /overloaded/);
    }
  }
});

test('an error sent as an event, or as bare JSON at the very start, maps to its failure kind', (t) => {
  const body = { error: { code: 429, message: 'slow down', status: 'RESOURCE_EXHAUSTED' } };
  for (const text of [toStream(body), JSON.stringify(body), `\r\n  ${JSON.stringify([body])}`]) {
    t.like(getError(t, translateText(text)), { failure: 'rate_limited', status: 429 });
  }
  const outcome = translateText(toStream(toChunk([{ text: 'a' }], 'STOP'), body, toChunk([{ text: 'b' }])));
  t.is(outcome.length, 2);
  t.is(getError(t, outcome).failure, 'rate_limited');
});

test('a stream that is one JSON array has the events of its chunks; an incomplete array is an error', (t) => {
  const array = JSON.stringify([toChunk([{ text: 'a' }]), toChunk([{ text: 'b' }], 'STOP')], null, 2);
  t.deepEqual(translateText(array), [
    delta({ role: 'assistant', content: 'a' }),
    delta({ content: 'b' }),
    STOP,
  ]);
  for (let length = 1; length < array.length; length += 1) {
    t.is(getError(t, translateText(array.slice(0, length))).failure, 'unavailable');
  }
});

test('a stream without output is an unavailable failure', (t) => {
  for (const text of [
    '',
    'data: nonsense\n\n',
    'data: [1]\n\n',
    '<html>',
    toStream({ candidates: [] }),
    toStream({}),
  ]) {
    t.is(getError(t, translateText(text)).failure, 'unavailable', text);
  }
});

test('braces and brackets within events are not mistaken for bare JSON', (t) => {
  const text = '{"error": {"code": 400}}\n[x]\n{';
  const chunk = JSON.stringify(toChunk([{ text }], 'STOP'), null, 1)
    .split('\n')
    .map((line) => `data:${line}\n`)
    .join('');
  t.deepEqual(translateText(`: comment {\nevent: message\n${chunk}\n`), [
    delta({ role: 'assistant', content: text }),
    STOP,
  ]);
});

test('usage including thoughts is reported with each chunk that changes it, so that it is billed if the stream is cut off', (t) => {
  const counts = (more: object): object => ({ usageMetadata: { promptTokenCount: 15, ...more } });
  const [one, two] = [toChunk([{ text: 'a' }]), toChunk([{ text: 'b' }])];
  const text = toStream(
    counts({}),
    counts({ thoughtsTokenCount: 4_000 }),
    counts({ thoughtsTokenCount: 10_000 }),
    { ...one, ...counts({ thoughtsTokenCount: 10_000, candidatesTokenCount: 1 }) },
    { ...two, ...counts({ thoughtsTokenCount: 10_000, candidatesTokenCount: 2 }) },
    counts({ thoughtsTokenCount: 10_000, candidatesTokenCount: 2 }),
  );
  const outcome = translatePieces(createChatStreamTranslator(OPTIONS), [Buffer.from(text)]);
  const sum = (completionTokens: number, reasoningTokens: number): ChatEvent =>
    count({ promptTokens: 15, completionTokens, reasoningTokens });
  t.deepEqual(outcome.slice(0, -1), [
    // Until the vendor reports thoughts or output, the number of thinking tokens is unknown.
    Object.assign(count({ promptTokens: 15, completionTokens: 0 }), { isPartial: true }),
    sum(4_000, 4_000),
    sum(10_000, 10_000),
    delta({ role: 'assistant', content: 'a' }),
    sum(10_001, 10_000),
    delta({ content: 'b' }),
    sum(10_002, 10_000),
  ]);
  t.true(outcome.at(-1) instanceof UpstreamError);
});
