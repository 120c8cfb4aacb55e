import type { OperationExample } from './operation.ts';

const id = '019aa2f4-6d0e-7c5b-9a51-0c2f7e8d4b16';
const created = 1_763_726_841;
const model = 'demo-echo';
const messages = [{ role: 'user', content: 'What is the capital of France?' }];

const usage = {
  prompt_tokens: 13,
  prompt_tokens_details: {
    cached_tokens: 0,
    audio_tokens: null,
    web_search_tokens: null,
    cache_write_tokens: null,
  },
  completion_tokens: 5,
  completion_tokens_details: { reasoning_tokens: null, audio_tokens: null },
  total_tokens: 18,
  total_time: 0.412,
  cost_request: 0.0014,
  free_request: false,
};

export const chatExample: OperationExample = {
  body: { model, messages, max_tokens: 200 },
  response: {
    id,
    object: 'chat.completion',
    created,
    model,
    choices: [
      {
        index: 0,
        message: { role: 'assistant', content: 'The capital is Paris.' },
        logprobs: null,
        finish_reason: 'stop',
        native_finish_reason: 'stop',
      },
    ],
    usage,
  },
};

interface ExampleChunk {
  readonly choices: readonly object[];
  readonly usage: object | null;
}

const piece = (delta: object, finishReason: string | null = null): ExampleChunk => ({
  choices: [{ index: 0, delta, logprobs: null, finish_reason: finishReason }],
  usage: null,
});

const chunks: readonly ExampleChunk[] = [
  piece({ role: 'assistant', content: 'The capital' }),
  piece({ content: ' is Paris.' }),
  piece({}, 'stop'),
  { choices: [], usage },
];

export const chatStreamExample: OperationExample = {
  body: { model, messages, stream: true, stream_options: { include_usage: true } },
  response: [
    ': queued position=1',
    ...chunks.map(
      (chunk) => `data: ${JSON.stringify({ id, object: 'chat.completion.chunk', created, model, ...chunk })}`,
    ),
    'data: [DONE]',
    '',
  ].join('\n\n'),
};
