import test from 'ava';

import { UpstreamError } from '../../../../workers/upstreams/upstream.ts';
import { fromChatResponse } from '../../../../workers/upstreams/openai/from-response.ts';

/** Adapted from the example responses of "Create chat completion" in the OpenAI API reference. */
const DOCUMENTED = {
  id: 'chatcmpl-B9MBs8CjcvOU2jLn4n570S5qMJKcT',
  object: 'chat.completion',
  created: 1_741_569_952,
  model: 'gpt-4.1-2025-04-14',
  choices: [
    {
      index: 0,
      message: { role: 'assistant', content: 'Hello!', refusal: null, annotations: [] },
      logprobs: null,
      finish_reason: 'stop',
    },
  ],
  usage: {
    prompt_tokens: 19,
    completion_tokens: 10,
    total_tokens: 29,
    prompt_tokens_details: { cached_tokens: 8, audio_tokens: 0 },
    completion_tokens_details: { reasoning_tokens: 0, audio_tokens: 0 },
  },
  service_tier: 'default',
};

function translate(body: object, options: object = {}): ReturnType<typeof fromChatResponse> {
  return fromChatResponse(JSON.stringify(body), { apiKey: null, ...options });
}

test('the documented response becomes a delta, a finish and usage', (t) => {
  t.deepEqual(translate(DOCUMENTED), [
    { type: 'delta', index: 0, delta: { role: 'assistant', content: 'Hello!', annotations: [] } },
    { type: 'finish', index: 0, finishReason: 'stop', nativeFinishReason: 'stop' },
    {
      type: 'usage',
      usage: {
        promptTokens: 19,
        completionTokens: 10,
        cachedTokens: 8,
        cacheWriteTokens: null,
        reasoningTokens: 0,
        webSearchTokens: null,
      },
    },
  ]);
});

test('tool calls of a non-streamed response get the index that they would have in a stream', (t) => {
  const call = (id: string): object => ({ id, type: 'function', function: { name: 'f', arguments: '{}' } });
  const message = { role: 'assistant', content: null, tool_calls: [call('a'), call('b')] };
  const [first, finish] = translate({ choices: [{ index: 0, message, finish_reason: 'tool_calls' }] });
  t.like(first, {
    delta: {
      role: 'assistant',
      tool_calls: [
        { ...call('a'), index: 0 },
        { ...call('b'), index: 1 },
      ],
    },
  });
  t.like(finish, { finishReason: 'tool_calls' });
});

test('several choices, log probabilities and the vendor’s own finish reason are passed on', (t) => {
  const choice = (index: number, reason: string): object => ({
    index,
    message: { role: 'assistant', content: `${index}`, reasoning_content: 'hm' },
    logprobs: { content: [] },
    finish_reason: reason,
  });
  const events = translate({ choices: [choice(0, 'max_tokens'), choice(1, 'eos')] }, { choices: 2 });
  t.like(events[0], { delta: { content: '0', reasoning_content: 'hm' }, logprobs: { content: [] } });
  t.like(events[2], { index: 0, finishReason: 'length', nativeFinishReason: 'max_tokens' });
  t.like(events[3], { index: 1, finishReason: 'stop', nativeFinishReason: 'eos' });
  t.is(events.length, 4);
});

test('a non-streamed response without a finish reason is finished', (t) => {
  const events = translate({ choices: [{ message: { content: 'a' } }] });
  t.like(events[1], { index: 0, finishReason: 'stop', nativeFinishReason: null });
});

test('an error within a 200 response, missing choices and invalid JSON are errors', (t) => {
  const failures: [string, string][] = [
    ['{"error":{"message":"x","code":429}}', 'rate_limited'],
    ['{"choices":[]}', 'unavailable'],
    ['[]', 'unavailable'],
    ['<html>', 'unavailable'],
    ['', 'unavailable'],
  ];
  for (const [text, failure] of failures) {
    const error = t.throws(() => fromChatResponse(text, { apiKey: null }), { instanceOf: UpstreamError });
    t.is(error?.failure, failure as UpstreamError['failure'], text);
  }
  t.is(translate({ ...DOCUMENTED, error: null }).length, 3);
});

test('a response without choices but with usage is an empty response', (t) => {
  const body = { choices: [], usage: { prompt_tokens: 5, completion_tokens: 5_000 } };
  t.like(fromChatResponse(JSON.stringify(body), { apiKey: null }), [
    { type: 'delta', index: 0, delta: { role: 'assistant', content: '' } },
    { type: 'finish', index: 0, finishReason: 'stop', nativeFinishReason: null },
    { type: 'usage', usage: { promptTokens: 5, completionTokens: 5_000 } },
  ]);
});

test('usage is read from the fields that other vendors use', (t) => {
  const usageOf = (usage: object): unknown => translate({ ...DOCUMENTED, usage }).at(-1);
  t.like(usageOf({ prompt_tokens: 5, completion_tokens: 1, prompt_cache_hit_tokens: 3 }), {
    usage: { cachedTokens: 3 },
  });
  t.like(
    usageOf({ prompt_tokens: 5, completion_tokens: 1, prompt_tokens_details: { cache_write_tokens: 2 } }),
    {
      usage: { cacheWriteTokens: 2 },
    },
  );
  t.like(usageOf({ prompt_tokens: '5', completion_tokens: -1 }), {
    usage: { promptTokens: null, completionTokens: null },
  });
});

test('reasoning tokens are added to the completion if the total or their number shows that the completion does not include them', (t) => {
  for (const { label, usage, completion } of [
    { label: 'as OpenAI reports it', usage: [20, 530, 550, 233], completion: 530 },
    { label: 'xAI: only within the total', usage: [37, 530, 800, 233], completion: 763 },
    { label: 'xAI: more reasoning than output', usage: [20, 1, 5_120, 5_099], completion: 5_100 },
    { label: 'Gemini in this format: shown only by the total', usage: [20, 198, 623, null], completion: 603 },
    { label: 'outside both', usage: [33, 7_163, 7_196, 73_997], completion: 81_160 },
    { label: 'without a total', usage: [20, 1, null, 5_099], completion: 5_100 },
    { label: 'without output', usage: [21, 0, 81, 60], completion: 60 },
    { label: 'a total that is too small', usage: [20, 530, 0, 233], completion: 530 },
  ] as const) {
    const [prompt, output, total, reasoned] = usage;
    const events = translate({
      ...DOCUMENTED,
      usage: {
        prompt_tokens: prompt,
        completion_tokens: output,
        total_tokens: total,
        completion_tokens_details: { reasoning_tokens: reasoned },
      },
    });
    t.like(events.at(-1), { usage: { completionTokens: completion, reasoningTokens: reasoned } }, label);
  }
  const flat = { prompt_tokens: 33, completion_tokens: 10, total_tokens: 43, reasoning_tokens: 90 };
  t.like(translate({ ...DOCUMENTED, usage: flat }).at(-1), { usage: { completionTokens: 100 } });
});

test('cached tokens that a server leaves out of the prompt are not added to the completion', (t) => {
  const details = { cached_tokens: 4_000, cache_write_tokens: 500 };
  for (const total of [4_030, 530, 4_530]) {
    const usage = {
      prompt_tokens: 20,
      completion_tokens: 10,
      total_tokens: total,
      prompt_tokens_details: details,
    };
    t.like(translate({ ...DOCUMENTED, usage }).at(-1), { usage: { completionTokens: 10 } }, `${total}`);
  }
});

test('impossible counts are treated as not reported', (t) => {
  for (const count of [-1, 1.5, 1e15, '10', null]) {
    const usage = { ...DOCUMENTED.usage, completion_tokens: count };
    const events = translate({ ...DOCUMENTED, usage });
    t.like(events.at(-1), { type: 'usage', usage: { promptTokens: 19, completionTokens: null } });
  }
});

test('tool calls of a non-streamed response that share an id stay separate', (t) => {
  const calls = ['Paris', 'Rome'].map((city) => ({
    id: 'call_0',
    type: 'function',
    function: { name: 'get', arguments: JSON.stringify({ city }) },
  }));
  const [delta] = translate({
    choices: [{ message: { content: null, tool_calls: calls }, finish_reason: 'tool_calls' }],
  });
  t.true(delta?.type === 'delta');
  t.deepEqual(
    (delta as { delta: Record<string, unknown> }).delta['tool_calls'],
    calls.map((call, index) => ({ ...call, index })),
  );
});
