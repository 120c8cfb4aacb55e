import test from 'ava';
import { findFittingLimit } from '../../../../workers/upstreams/openai/fit-limit.ts';
import { UpstreamError } from '../../../../workers/upstreams/upstream.ts';

const rejected = (message: string): UpstreamError => new UpstreamError('rejected', message, { status: 400 });

const messages: readonly (readonly [server: string, message: string, fitting: number | null])[] = [
  [
    'OpenAI, DeepSeek, older vLLM',
    "This model's maximum context length is 8192 tokens. However, you requested 8300 tokens (1300 in the messages, 7000 in the completion). Please reduce the length of the messages or completion.",
    6892,
  ],
  [
    'OpenRouter',
    "This endpoint's maximum context length is 8192 tokens. However, you requested about 8500 tokens (1500 of text input, 7000 in the output).",
    6692,
  ],
  [
    'vLLM',
    "'max_tokens' or 'max_completion_tokens' is too large: 7000. This model's maximum context length is 8192 tokens and your request has 1500 input tokens (7000 > 8192 - 1500).",
    6692,
  ],
  [
    'vLLM from 0.13, which stops counting',
    "This model's maximum context length is 8192 tokens. However, you requested 7000 output tokens and your prompt contains at least 1193 input tokens, for a total of at least 8193 tokens.",
    3500,
  ],
  [
    'vLLM from 0.30, which has not counted',
    "This model's maximum context length is 8192 tokens. However, you requested 7000 output tokens and your prompt contains 200000 characters (more than 152576 characters, which is the upper bound for 1192 input tokens).",
    3500,
  ],
  ['DeepSeek, with a maximum', 'Invalid max_tokens value, the valid range of max_tokens is [1, 4096]', 4096],
  [
    'SGLang',
    "Requested token count exceeds the model's maximum context length of 8192 tokens. You requested a total of 9000 tokens: 2000 tokens from the input messages and 7000 tokens for the completion.",
    6192,
  ],
  [
    'Text Generation Inference',
    'Input validation error: `inputs` tokens + `max_new_tokens` must be <= 8192. Given: 1500 `inputs` tokens and 7000 `max_new_tokens`',
    6692,
  ],
  [
    'a prompt that alone is too long',
    "This model's maximum context length is 8192 tokens. However, you requested 16300 tokens (9300 in the messages, 7000 in the completion).",
    null,
  ],
  ['another reason', "'temperature' must be at most 2", null],
];

for (const [server, message, fitting] of messages) {
  test(`the limit that fits is read from a refusal: ${server}`, (t) => {
    t.is(findFittingLimit(rejected(message), 7_000), fitting);
  });
}

test('only a refusal leads to a lower limit, and never to a higher one', (t) => {
  const message = messages[0]![1];
  t.is(findFittingLimit(rejected(message), 6_892), null);
  t.is(findFittingLimit(new UpstreamError('unavailable', message, { status: 500 }), 7_000), null);
  t.is(findFittingLimit(new Error(message), 7_000), null);
});
