import test from 'ava';

import { UpstreamError } from '../../../../workers/upstreams/upstream.ts';
import { fromChatResponse } from '../../../../workers/upstreams/openai/from-response.ts';

/** After the example responses of "Create chat completion" in the OpenAI API reference. */
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

function answer(body: object): ReturnType<typeof fromChatResponse> {
  return fromChatResponse(JSON.stringify(body), null);
}

test('the documented response becomes a delta, a finish and usage', (t) => {
  t.deepEqual(answer(DOCUMENTED), [
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

test('whole tool calls get the index that they would have in a stream', (t) => {
  const call = (id: string): object => ({ id, type: 'function', function: { name: 'f', arguments: '{}' } });
  const message = { role: 'assistant', content: null, tool_calls: [call('a'), call('b')] };
  const [first, finish] = answer({ choices: [{ index: 0, message, finish_reason: 'tool_calls' }] });
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

test('several choices, log probabilities and the vendor’s own finish reason are kept', (t) => {
  const choice = (index: number, reason: string): object => ({
    index,
    message: { role: 'assistant', content: `${index}`, reasoning_content: 'hm' },
    logprobs: { content: [] },
    finish_reason: reason,
  });
  const events = answer({ choices: [choice(0, 'max_tokens'), choice(1, 'eos')] });
  t.like(events[0], { delta: { content: '0', reasoning_content: 'hm' }, logprobs: { content: [] } });
  t.like(events[1], { index: 0, finishReason: 'length', nativeFinishReason: 'max_tokens' });
  t.like(events[3], { index: 1, finishReason: 'stop', nativeFinishReason: 'eos' });
  t.is(events.length, 4);
});

test('a whole response without a finish is finished', (t) => {
  const events = answer({ choices: [{ message: { content: 'a' } }] });
  t.like(events[1], { index: 0, finishReason: 'stop', nativeFinishReason: null });
});

test('an error within a 200, a response without choices and invalid JSON are errors', (t) => {
  const failures: [string, string][] = [
    ['{"error":{"message":"x","code":429}}', 'rate_limited'],
    ['{"choices":[]}', 'unavailable'],
    ['[]', 'unavailable'],
    ['<html>', 'unavailable'],
    ['', 'unavailable'],
  ];
  for (const [text, failure] of failures) {
    const error = t.throws(() => fromChatResponse(text, null), { instanceOf: UpstreamError });
    t.is(error?.failure, failure as UpstreamError['failure'], text);
  }
  t.is(answer({ ...DOCUMENTED, error: null }).length, 3);
});

test('a response without choices but with usage is an empty one', (t) => {
  const body = { choices: [], usage: { prompt_tokens: 5, completion_tokens: 5_000 } };
  t.like(fromChatResponse(JSON.stringify(body), null), [
    { type: 'delta', index: 0, delta: { role: 'assistant', content: '' } },
    { type: 'finish', index: 0, finishReason: 'stop', nativeFinishReason: null },
    { type: 'usage', usage: { promptTokens: 5, completionTokens: 5_000 } },
  ]);
});

test('the usage formats of other vendors are recognized', (t) => {
  const usageOf = (usage: object): unknown => answer({ ...DOCUMENTED, usage }).at(-1);
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

test('reasoning that is reported beside the completion is added to it, as shown by the total or by its own count', (t) => {
  for (const { what, usage, completion } of [
    { what: 'as OpenAI reports it', usage: [20, 530, 550, 233], completion: 530 },
    { what: 'xAI: within the total alone', usage: [37, 530, 800, 233], completion: 763 },
    { what: 'xAI: more of it than was said', usage: [20, 1, 5_120, 5_099], completion: 5_100 },
    { what: 'Gemini in this form: told by the total alone', usage: [20, 198, 623, null], completion: 603 },
    { what: 'beside both', usage: [33, 7_163, 7_196, 73_997], completion: 81_160 },
    { what: 'without a total', usage: [20, 1, null, 5_099], completion: 5_100 },
    { what: 'without a word said', usage: [21, 0, 81, 60], completion: 60 },
    { what: 'a total that is too small', usage: [20, 530, 0, 233], completion: 530 },
  ] as const) {
    const [prompt, said, total, reasoned] = usage;
    const events = answer({
      ...DOCUMENTED,
      usage: {
        prompt_tokens: prompt,
        completion_tokens: said,
        total_tokens: total,
        completion_tokens_details: { reasoning_tokens: reasoned },
      },
    });
    t.like(events.at(-1), { usage: { completionTokens: completion, reasoningTokens: reasoned } }, what);
  }
  const flat = { prompt_tokens: 33, completion_tokens: 10, total_tokens: 43, reasoning_tokens: 90 };
  t.like(answer({ ...DOCUMENTED, usage: flat }).at(-1), { usage: { completionTokens: 100 } });
});

test('cached tokens that a server leaves out of the prompt are not counted as completion', (t) => {
  const details = { cached_tokens: 4_000, cache_write_tokens: 500 };
  for (const total of [4_030, 530, 4_530]) {
    const usage = {
      prompt_tokens: 20,
      completion_tokens: 10,
      total_tokens: total,
      prompt_tokens_details: details,
    };
    t.like(answer({ ...DOCUMENTED, usage }).at(-1), { usage: { completionTokens: 10 } }, `${total}`);
  }
});

test('impossible counts are treated as not reported', (t) => {
  for (const count of [-1, 1.5, 1e15, '10', null]) {
    const usage = { ...DOCUMENTED.usage, completion_tokens: count };
    const events = answer({ ...DOCUMENTED, usage });
    t.like(events.at(-1), { type: 'usage', usage: { promptTokens: 19, completionTokens: null } });
  }
});

test('whole tool calls with the same id stay separate calls', (t) => {
  const calls = ['Paris', 'Rome'].map((city) => ({
    id: 'call_0',
    type: 'function',
    function: { name: 'get', arguments: JSON.stringify({ city }) },
  }));
  const [delta] = answer({
    choices: [{ message: { content: null, tool_calls: calls }, finish_reason: 'tool_calls' }],
  });
  t.true(delta?.type === 'delta');
  t.deepEqual(
    (delta as { delta: Record<string, unknown> }).delta['tool_calls'],
    calls.map((call, index) => ({ ...call, index })),
  );
});
