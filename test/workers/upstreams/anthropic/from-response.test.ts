import test from 'ava';

import { createMessageTranslator } from '../../../../workers/upstreams/anthropic/response-translator.ts';
import { fromMessage } from '../../../../workers/upstreams/anthropic/from-response.ts';
import { type ChatEvent, noUpstreamUsage, UpstreamError } from '../../../../workers/upstreams/upstream.ts';

const options = { model: 'claude-sonnet-4-5', remembers: false };

function translate(message: object, more: Partial<typeof options> = {}): ChatEvent[] {
  return fromMessage(JSON.stringify(message), createMessageTranslator({ ...options, ...more }), 'sk-ant-key');
}

function toMessage(content: object[], stop_reason: string | null, usage: object = {}): object {
  const base = { id: 'msg_1', type: 'message', role: 'assistant', model: 'claude-sonnet-4-5' };
  return { ...base, content, stop_reason, stop_sequence: null, usage };
}

const delta = (fields: object): ChatEvent => ({ type: 'delta', index: 0, delta: { ...fields } });
const START = delta({ role: 'assistant', content: '' });

/** The example of "Basic request and response" in Anthropic's guide to the Messages API. */
const DOCUMENTED = {
  id: 'msg_01XFDUDYJgAACzvnptvVoYEL',
  type: 'message',
  role: 'assistant',
  content: [{ type: 'text', text: 'Hello!' }],
  model: 'claude-opus-5',
  stop_reason: 'end_turn',
  stop_sequence: null,
  usage: { input_tokens: 12, output_tokens: 6 },
};

test('the documented response is a delta, a finish and its usage', (t) => {
  t.deepEqual(translate(DOCUMENTED), [
    START,
    delta({ content: 'Hello!' }),
    { type: 'finish', index: 0, finishReason: 'stop', nativeFinishReason: 'end_turn' },
    { type: 'usage', usage: { ...noUpstreamUsage, promptTokens: 12, completionTokens: 6 } },
  ]);
});

test('cached tokens are part of the prompt, and thinking is part of the output', (t) => {
  const usage = {
    input_tokens: 10,
    cache_creation_input_tokens: 200,
    cache_read_input_tokens: 3000,
    output_tokens: 50,
    output_tokens_details: { thinking_tokens: 40 },
    server_tool_use: { web_search_requests: 1 },
  };
  t.deepEqual(translate(toMessage([], 'end_turn', usage)).at(-1), {
    type: 'usage',
    usage: {
      promptTokens: 3210,
      completionTokens: 50,
      cachedTokens: 3000,
      cacheWriteTokens: 200,
      reasoningTokens: 40,
      webSearchTokens: null,
    },
  });
  const nulls = {
    input_tokens: 10,
    cache_read_input_tokens: null,
    output_tokens: 0,
    output_tokens_details: null,
  };
  t.deepEqual(translate(toMessage([], 'end_turn', nulls)).at(-1), {
    type: 'usage',
    usage: { ...noUpstreamUsage, promptTokens: 10, completionTokens: 0 },
  });
  t.is(translate(toMessage([], 'end_turn')).at(-1)?.type, 'finish');
});

test('every stop reason maps to a finish reason of OpenAI, and the vendor’s own reason is included', (t) => {
  const reasons = {
    end_turn: 'stop',
    stop_sequence: 'stop',
    max_tokens: 'length',
    model_context_window_exceeded: 'length',
    tool_use: 'tool_calls',
    refusal: 'content_filter',
    'a reason of tomorrow': 'length',
  };
  for (const [native, finishReason] of Object.entries(reasons)) {
    t.deepEqual(translate(toMessage([], native)), [
      START,
      { type: 'finish', index: 0, finishReason, nativeFinishReason: native },
    ]);
  }
});

const THOUGHT = { type: 'thinking', thinking: 'Let me see.', signature: 'c2ln' };
const HIDDEN = { type: 'redacted_thinking', data: 'ZW5j' };
/** Adapted from "Extended thinking with tool use" in Anthropic's guide, with a second call that takes no arguments. */
const CALLS = toMessage(
  [
    THOUGHT,
    HIDDEN,
    { type: 'text', text: 'I will look.' },
    { type: 'tool_use', id: 'toolu_01', name: 'get_weather', input: { location: 'Paris' } },
    { type: 'tool_use', id: 'toolu_02', name: 'get_time', input: {} },
  ],
  'tool_use',
);

test('thinking, text and calls are in order, and the thinking is remembered with the first call', (t) => {
  const call = (index: number, id: string, name: string, args: string): ChatEvent[] => [
    delta({ tool_calls: [{ index, id, type: 'function', function: { name, arguments: '' } }] }),
    delta({ tool_calls: [{ index, function: { arguments: args } }] }),
  ];
  const output = [
    START,
    delta({ reasoning_content: 'Let me see.' }),
    delta({ content: 'I will look.' }),
    ...call(0, 'toolu_01', 'get_weather', '{"location":"Paris"}'),
    ...call(1, 'toolu_02', 'get_time', '{}'),
  ];
  const finish = {
    type: 'finish',
    index: 0,
    finishReason: 'tool_calls',
    nativeFinishReason: 'tool_use',
  } as const;
  t.deepEqual(translate(CALLS), [...output, finish]);
  t.deepEqual(translate(CALLS, { remembers: true }), [
    ...output,
    {
      type: 'remember',
      index: 0,
      toolCallId: 'toolu_01',
      value: { kind: 'anthropic', model: 'claude-sonnet-4-5', blocks: [THOUGHT, HIDDEN] },
    },
    finish,
  ]);
});

test('if a response to a thinking request calls a tool without thinking, the absence is remembered; a response without calls is not remembered', (t) => {
  const call = { type: 'tool_use', id: 'toolu_01', name: 'f', input: {} };
  const find = (content: object[]): ChatEvent[] =>
    translate(toMessage(content, 'tool_use'), { remembers: true }).filter(({ type }) => type === 'remember');
  t.like(find([call])[0], { toolCallId: 'toolu_01', value: { blocks: [] } });
  t.deepEqual(find([THOUGHT, { type: 'text', text: 'Hi' }]), []);
  // Unsigned thinking is not remembered, because the vendor would reject it.
  t.like(find([{ type: 'thinking', thinking: 'hm' }, call])[0], { value: { blocks: [] } });
});

/** Adapted from "Response" in Anthropic's page on the web search tool. */
const SEARCHED = toMessage(
  [
    { type: 'text', text: 'I will search.' },
    {
      type: 'server_tool_use',
      id: 'srvtoolu_01',
      name: 'web_search',
      input: { query: 'claude shannon birth date' },
    },
    {
      type: 'web_search_tool_result',
      tool_use_id: 'srvtoolu_01',
      content: [
        {
          type: 'web_search_result',
          url: 'https://en.wikipedia.org/wiki/Claude_Shannon',
          title: 'Claude Shannon - Wikipedia',
          encrypted_content: 'EqgfCioIARgBIiQ3YTAwMjY1Mi1mZjM5LTQ1NGUtODgxNC1kNjNjNTk1ZWI3Y...',
          page_age: 'April 30, 2025',
        },
      ],
    },
    {
      type: 'text',
      text: 'Claude Shannon was born on April 30, 1916',
      citations: [
        {
          type: 'web_search_result_location',
          url: 'https://en.wikipedia.org/wiki/Claude_Shannon',
          title: 'Claude Shannon - Wikipedia',
          encrypted_index: 'Eo8BCioIAhgBIiQyYjQ0OWJmZi1lNm..',
          cited_text:
            'Claude Elwood Shannon (April 30, 1916 – February 24, 2001) was an American mathematician',
        },
        { type: 'web_search_result_location', url: 'https://example.com/', title: null, cited_text: '' },
        { type: 'char_location', cited_text: 'of a document', document_index: 0 },
      ],
    },
    {
      type: 'text',
      text: '.',
      citations: [{ type: 'web_search_result_location', url: 'https://example.com/', title: 'Again' }],
    },
  ],
  'end_turn',
);

test('a search yields its text and the pages that the text cites, each once', (t) => {
  t.deepEqual(translate(SEARCHED), [
    START,
    delta({ content: 'I will search.' }),
    delta({ content: 'Claude Shannon was born on April 30, 1916' }),
    {
      type: 'sources',
      index: 0,
      sources: [
        { url: 'https://en.wikipedia.org/wiki/Claude_Shannon', title: 'Claude Shannon - Wikipedia' },
        { url: 'https://example.com/', title: null },
      ],
    },
    delta({ content: '.' }),
    { type: 'finish', index: 0, finishReason: 'stop', nativeFinishReason: 'end_turn' },
  ]);
});

test('unknown blocks are skipped', (t) => {
  t.deepEqual(
    translate(
      toMessage(
        [
          { type: 'hologram', text: 'x' },
          { type: 'text', text: 'Hi' },
        ],
        'end_turn',
      ),
    ),
    [
      START,
      delta({ content: 'Hi' }),
      { type: 'finish', index: 0, finishReason: 'stop', nativeFinishReason: 'end_turn' },
    ],
  );
});

test('a pause is not a finish: the response continues with another message, and usage is summed', (t) => {
  const translator = createMessageTranslator({ ...options, remembers: true });
  const call = { type: 'tool_use', id: 'toolu_01', name: 'f', input: {} };
  const usage = (input_tokens: number, output_tokens: number): object => ({ input_tokens, output_tokens });
  const read = (message: object): ChatEvent[] => fromMessage(JSON.stringify(message), translator, null);
  const count = (promptTokens: number, completionTokens: number | null): ChatEvent => ({
    type: 'usage',
    usage: { ...noUpstreamUsage, promptTokens, completionTokens },
  });
  const first = [THOUGHT, { type: 'server_tool_use', id: 's', name: 'web_search', input: { query: 'x' } }];
  t.deepEqual(read(toMessage(first, 'pause_turn', usage(10, 5))), [
    START,
    delta({ reasoning_content: 'Let me see.' }),
    count(10, 5),
  ]);
  t.true(translator.isPaused);
  t.deepEqual(translator.blocks, first);
  const events = read(toMessage([{ type: 'text', text: 'So' }, call], 'tool_use', usage(30, 7)));
  t.false(translator.isPaused);
  t.deepEqual(events[1], delta({ content: 'So' }));
  t.deepEqual(events.slice(-3), [
    {
      type: 'remember',
      index: 0,
      toolCallId: 'toolu_01',
      value: { kind: 'anthropic', model: 'claude-sonnet-4-5', blocks: [THOUGHT] },
    },
    { type: 'finish', index: 0, finishReason: 'tool_calls', nativeFinishReason: 'tool_use' },
    count(40, 12),
  ]);
});

test('a response that is not continued after a pause finishes with length', (t) => {
  const translator = createMessageTranslator(options);
  fromMessage(JSON.stringify(toMessage([], 'pause_turn')), translator, null);
  t.deepEqual(translator.giveUp(), [
    { type: 'finish', index: 0, finishReason: 'length', nativeFinishReason: 'pause_turn' },
  ]);
});

test('an error within a 200 response and an invalid body are errors', (t) => {
  const error = { type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } };
  t.like(
    t.throws(() => translate(error), { instanceOf: UpstreamError }),
    { failure: 'unavailable', status: 529 },
  );
  for (const text of ['<html>', '[]', '{}', '{"content": "text"}']) {
    const thrown = t.throws(() => fromMessage(text, createMessageTranslator(options), null), {
      instanceOf: UpstreamError,
    });
    t.is(thrown.failure, 'unavailable');
  }
});
