import type { OperationExample } from './operation.ts';

const model = 'demo-echo';
const messages = [{ role: 'user', content: 'Hello!' }];

const usageOf = (completionTokens: number, totalTime: number, costRequest: number) => ({
  prompt_tokens: 8,
  prompt_tokens_details: {
    cached_tokens: 0,
    audio_tokens: null,
    web_search_tokens: null,
    cache_write_tokens: null,
  },
  completion_tokens: completionTokens,
  completion_tokens_details: { reasoning_tokens: null, audio_tokens: null },
  total_tokens: 8 + completionTokens,
  total_time: totalTime,
  cost_request: costRequest,
  free_request: false,
});

export const chatExample: OperationExample = {
  body: { model, messages, max_tokens: 200 },
  response: {
    id: '019aa64f-d5de-7c5b-9a51-0c2f7e8d4b16',
    object: 'chat.completion',
    created: 1_763_726_841,
    model,
    choices: [
      {
        index: 0,
        message: {
          role: 'assistant',
          content: 'This is demo-echo: I am not an AI, I only echo what I was told. You said: Hello!',
        },
        logprobs: null,
        finish_reason: 'stop',
        native_finish_reason: 'stop',
      },
    ],
    usage: usageOf(25, 0.021, 0.00415),
  },
};

interface ExampleChunk {
  readonly choices: readonly object[];
  readonly usage: object | null;
}

const piece = (delta: object, finishReason: string | null = null): ExampleChunk => ({
  choices: [
    {
      index: 0,
      delta,
      logprobs: null,
      finish_reason: finishReason,
      ...(finishReason === null ? {} : { native_finish_reason: finishReason }),
    },
  ],
  usage: null,
});

const chunks: readonly ExampleChunk[] = [
  piece({ role: 'assistant', content: 'This' }),
  piece({ content: ' is' }),
  piece({ content: ' demo-echo:' }),
  piece({}, 'length'),
  { choices: [], usage: usageOf(6, 0.036, 0.0013) },
];

const chunkHead = {
  id: '019aa64f-d812-7e03-b7d4-61c0a95f2e8a',
  object: 'chat.completion.chunk',
  created: 1_763_726_841,
  model,
};

export const chatStreamExample: OperationExample = {
  body: { model, messages, max_tokens: 6, stream: true, stream_options: { include_usage: true } },
  response: [
    ...chunks.map((chunk) => `data: ${JSON.stringify({ ...chunkHead, ...chunk })}`),
    'data: [DONE]',
    '',
  ].join('\n\n'),
};
