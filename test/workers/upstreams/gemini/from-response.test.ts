import test from 'ava';

import type { ResponseOptions } from '../../../../workers/upstreams/gemini/response-translator.ts';
import { fromChatResponse } from '../../../../workers/upstreams/gemini/from-response.ts';
import {
  noUpstreamUsage,
  UpstreamError,
  type UpstreamFailure,
} from '../../../../workers/upstreams/upstream.ts';

const OPTIONS: ResponseOptions = { model: 'gemini-2.0-flash', apiKey: 'AIzaSy-1234567890', oneCall: false };

/**
 * Adapted from FirebaseExtended/vertexai-sdk-test-data, googleai/unary-success-google-search-grounding.json, shortened,
 * with the counts of unary-success-url-context.json.
 */
const GROUNDED = {
  candidates: [
    {
      content: { parts: [{ text: 'It is cloudy, 67°F (19°C).\n' }], role: 'model' },
      finishReason: 'STOP',
      groundingMetadata: {
        searchEntryPoint: { renderedContent: '<style></style>' },
        groundingChunks: [
          {
            web: {
              uri: 'https://vertexaisearch.cloud.google.com/grounding-api-redirect/AbF9wXHS4dq==',
              title: 'accuweather.com',
            },
          },
          { web: { uri: 'https://www.google.com/search?q=weather+in+London' } },
        ],
        groundingSupports: [{ segment: { endIndex: 56 }, groundingChunkIndices: [0] }],
        webSearchQueries: ['current weather in London'],
      },
    },
  ],
  usageMetadata: {
    promptTokenCount: 15,
    candidatesTokenCount: 102,
    totalTokenCount: 683,
    toolUsePromptTokenCount: 424,
    thoughtsTokenCount: 142,
  },
  modelVersion: 'gemini-2.0-flash',
  responseId: 'qA5DaPG6AZ_KhMIPkLCIoAU',
};

test('a recorded response with sources is translated', (t) => {
  t.deepEqual(fromChatResponse(JSON.stringify(GROUNDED), OPTIONS), [
    { type: 'delta', index: 0, delta: { role: 'assistant', content: 'It is cloudy, 67°F (19°C).\n' } },
    {
      type: 'sources',
      index: 0,
      sources: [
        {
          url: 'https://vertexaisearch.cloud.google.com/grounding-api-redirect/AbF9wXHS4dq==',
          title: 'accuweather.com',
        },
        { url: 'https://www.google.com/search?q=weather+in+London', title: null },
      ],
    },
    { type: 'finish', index: 0, finishReason: 'stop', nativeFinishReason: 'STOP' },
    {
      type: 'usage',
      usage: {
        ...noUpstreamUsage,
        promptTokens: 439,
        completionTokens: 244,
        reasoningTokens: 142,
        webSearchTokens: 424,
      },
    },
  ]);
});

test('candidates without an index use their position', (t) => {
  const response = {
    candidates: ['a', 'b'].map((text) => ({ content: { parts: [{ text }] }, finishReason: 'STOP' })),
  };
  const events = fromChatResponse(JSON.stringify(response), OPTIONS);
  t.deepEqual(
    events.map((event) => [event.type, 'index' in event ? event.index : null]),
    [
      ['delta', 0],
      ['delta', 1],
      ['finish', 0],
      ['finish', 1],
    ],
  );
});

test('a failed candidate does not discard the output of another', (t) => {
  const response = {
    candidates: [
      { finishReason: 'MALFORMED_FUNCTION_CALL', index: 0 },
      { content: { parts: [{ text: 'b' }] }, finishReason: 'STOP', index: 1 },
    ],
  };
  const events = fromChatResponse(JSON.stringify(response), OPTIONS);
  t.deepEqual(
    events.filter((event) => event.type === 'finish'),
    [
      { type: 'finish', index: 0, finishReason: 'stop', nativeFinishReason: 'MALFORMED_FUNCTION_CALL' },
      { type: 'finish', index: 1, finishReason: 'stop', nativeFinishReason: 'STOP' },
    ],
  );
});

test('an array of chunks, the stream format without SSE, is one response', (t) => {
  const chunks = [
    { candidates: [{ content: { parts: [{ text: 'a' }] } }] },
    { candidates: [{ content: { parts: [{ text: 'b' }] }, finishReason: 'STOP' }] },
  ];
  t.is(fromChatResponse(JSON.stringify(chunks), OPTIONS).length, 3);
});

test('a body without output maps to its failure kind', (t) => {
  const bodies: [unknown, UpstreamFailure][] = [
    [{ candidates: [], promptFeedback: { blockReasonMessage: 'Message' } }, 'unavailable'],
    [{ candidates: [{ finishReason: 'OTHER', finishMessage: 'internal error' }] }, 'unavailable'],
    [{ candidates: [{ content: { parts: [{ text: 'a' }] } }] }, 'unavailable'],
    [[], 'unavailable'],
    [['a'], 'unavailable'],
    ['text', 'unavailable'],
    [{ error: { code: 404, message: 'no such model', status: 'NOT_FOUND' } }, 'missing'],
    [[{ error: { code: 429, status: 'RESOURCE_EXHAUSTED' } }], 'rate_limited'],
  ];
  for (const [body, failure] of bodies) {
    const error = t.throws(() => fromChatResponse(JSON.stringify(body), OPTIONS), {
      instanceOf: UpstreamError,
    });
    t.is(error.failure, failure, JSON.stringify(body));
  }
  t.throws(() => fromChatResponse('{"candidates":', OPTIONS), { instanceOf: UpstreamError });
});
