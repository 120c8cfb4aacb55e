import test from 'ava';

import { createTarget } from '../../../support/upstream-target.ts';
import {
  continueRequest,
  type MessagesRequest,
  toChatRequest,
} from '../../../../workers/upstreams/anthropic/to-request.ts';
import {
  nameCall,
  type ChatBody,
  type Recalled,
  type UpstreamTarget,
} from '../../../../workers/upstreams/upstream.ts';

const OLDER = 'claude-sonnet-4-5';
const NEWER = 'claude-opus-4-8';
const NEWEST = 'claude-opus-5-5';

interface More {
  readonly target?: Partial<UpstreamTarget>;
  readonly stream?: boolean;
  readonly recalled?: Recalled;
}

function toBody(fields: object): ChatBody {
  return { messages: [{ role: 'user', content: 'Hi' }], max_tokens: 8192, temperature: 0.7, ...fields };
}

function translate(model: string, fields: object = {}, more: More = {}): MessagesRequest {
  return toChatRequest(createTarget(model, more.target), toBody(fields), more.stream ?? false, {
    media: new Map(),
    recalled: more.recalled ?? new Map(),
  });
}

/** The fields of a request other than model, messages and max_tokens. */
function fieldsOf(model: string, fields: object = {}, more: More = {}): Record<string, unknown> {
  const {
    model: _model,
    messages: _messages,
    max_tokens: _max,
    ...rest
  } = translate(model, fields, more).body;
  return rest;
}

const TOOL = {
  type: 'function',
  function: {
    name: 'get_weather',
    description: 'Tells the weather.',
    parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
    strict: true,
  },
};
const OTHER_TOOL = { type: 'function', function: { name: 'get_time' } };
const forced = { tools: [TOOL], tool_choice: { type: 'function', function: { name: 'get_weather' } } };

test('a plain chat is the documented request', (t) => {
  t.deepEqual(translate(OLDER, { user: 'u-1', stop: 'END' }, { stream: true }), {
    body: {
      model: OLDER,
      max_tokens: 8192,
      messages: [{ role: 'user', content: [{ type: 'text', text: 'Hi' }] }],
      temperature: 0.7,
      stop_sequences: ['END'],
      metadata: { user_id: 'u-1' },
      stream: true,
    },
    betas: [],
    thinks: false,
  });
  const newer = translate(OLDER, { max_tokens: 0, max_completion_tokens: 99 });
  t.is(newer.body['max_tokens'], 99);
});

test('unsupported fields and fields that a route drops are left out, except those that every request needs', (t) => {
  const unknown = {
    frequency_penalty: 1,
    presence_penalty: 1,
    repetition_penalty: 1,
    min_p: 0.1,
    top_a: 0.1,
    seed: 1,
    logit_bias: {},
    verbosity: 'low',
    prediction: {},
    service_tier: 'auto',
    store: true,
    metadata: { a: 'b' },
    n: 1,
    logprobs: true,
  };
  t.deepEqual(fieldsOf(OLDER, unknown), { temperature: 0.7 });
  const drops = new Set(['temperature', 'tools', 'max_tokens', 'messages', 'stop']);
  const { body } = translate(OLDER, { tools: [TOOL], stop: ['END'] }, { target: { drops } });
  t.deepEqual(Object.keys(body), ['model', 'max_tokens', 'messages']);
});

test('only the sampling parameters that the model supports are sent', (t) => {
  const all = { temperature: 1.5, top_p: 0.9, top_k: 40 };
  t.deepEqual(fieldsOf('claude-3-5-haiku-20241022', all), { temperature: 1, top_p: 0.9, top_k: 40 });
  t.deepEqual(fieldsOf(OLDER, all), { top_p: 0.9, top_k: 40 });
  t.deepEqual(fieldsOf(OLDER, { ...all, top_p: 1, top_k: 0 }), { temperature: 1 });
  t.deepEqual(fieldsOf(NEWER, all), {});
  t.deepEqual(fieldsOf('claude-unheard-of', all), {});
  const thinking = { type: 'enabled', budget_tokens: 4096 };
  t.deepEqual(fieldsOf(OLDER, { ...all, reasoning_effort: 'low' }), { thinking });
  t.deepEqual(fieldsOf(OLDER, { ...all, top_p: 0.95, reasoning_effort: 'low' }), { top_p: 0.95, thinking });
});

test('stop sequences of only whitespace are left out', (t) => {
  t.deepEqual(fieldsOf(NEWER, { stop: ['\n', ' ', 'END', ''] }), { stop_sequences: ['END'] });
  t.deepEqual(fieldsOf(NEWER, { stop: '\n' }), {});
});

test('a JSON schema becomes the output format', (t) => {
  const schema = { type: 'object', properties: {}, additionalProperties: false };
  const format = { type: 'json_schema', json_schema: { name: 'x', schema, strict: true } };
  t.deepEqual(fieldsOf(NEWER, { response_format: format }), {
    output_config: { format: { type: 'json_schema', schema } },
  });
  t.deepEqual(fieldsOf(NEWER, { response_format: format, reasoning_effort: 'low' })['output_config'], {
    effort: 'low',
    format: { type: 'json_schema', schema },
  });
  t.deepEqual(fieldsOf(NEWER, { response_format: { type: 'text' } }), {});
});

test('functions become tools, with a schema even if none was given', (t) => {
  t.deepEqual(fieldsOf(NEWER, { tools: [TOOL, OTHER_TOOL] }), {
    tools: [
      {
        name: 'get_weather',
        description: 'Tells the weather.',
        input_schema: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
        strict: true,
      },
      { name: 'get_time', input_schema: { type: 'object', properties: {} } },
    ],
  });
});

test('every tool choice is translated, and none is sent without tools', (t) => {
  const choose = (choice: unknown, more: object = {}): unknown =>
    fieldsOf(NEWER, { tools: [TOOL, OTHER_TOOL], tool_choice: choice, ...more })['tool_choice'];
  const single = { parallel_tool_calls: false };
  t.is(choose('auto'), undefined);
  t.is(choose(null), undefined);
  t.deepEqual(choose('none', single), { type: 'none' });
  t.deepEqual(choose('required'), { type: 'any' });
  t.deepEqual(choose(forced.tool_choice), { type: 'tool', name: 'get_weather' });
  t.deepEqual(choose('auto', single), { type: 'auto', disable_parallel_tool_use: true });
  t.deepEqual(choose('required', single), { type: 'any', disable_parallel_tool_use: true });
  t.deepEqual(choose(forced.tool_choice, single), {
    type: 'tool',
    name: 'get_weather',
    disable_parallel_tool_use: true,
  });
  t.deepEqual(fieldsOf(NEWER, { tool_choice: 'required', ...single }), {});
});

test('tools that are not allowed are left out', (t) => {
  const allowed = { mode: 'required', tools: [{ type: 'function', function: { name: 'get_time' } }] };
  t.deepEqual(
    fieldsOf(NEWER, {
      tools: [TOOL, OTHER_TOOL],
      tool_choice: { type: 'allowed_tools', allowed_tools: allowed },
    }),
    {
      tools: [{ name: 'get_time', input_schema: { type: 'object', properties: {} } }],
      tool_choice: { type: 'any' },
    },
  );
});

const called = [
  { role: 'user', content: 'Weather?' },
  {
    role: 'assistant',
    content: null,
    tool_calls: [
      { id: 'a', type: 'function', function: { name: 'get_weather', arguments: '{}' } },
      { id: 'b', type: 'function', function: { name: 'get_time', arguments: '{}' } },
    ],
  },
  { role: 'tool', tool_call_id: 'a', content: 'sunny' },
  { role: 'tool', tool_call_id: 'b', content: 'noon' },
];

test('tools that were called but not declared are declared in the request', (t) => {
  t.deepEqual(fieldsOf(NEWER, { messages: called }), {
    tools: [
      { name: 'get_weather', input_schema: { type: 'object', properties: {} } },
      { name: 'get_time', input_schema: { type: 'object', properties: {} } },
    ],
    tool_choice: { type: 'none' },
  });
});

test('web search is a server tool, with the given location', (t) => {
  const search = { type: 'web_search_20250305', name: 'web_search', max_uses: 5 };
  for (const fields of [
    { web_search: true },
    { web_search: 'links' },
    { web_search: 'no-links' },
    { web_search_options: {} },
  ]) {
    t.deepEqual(fieldsOf(NEWER, fields), { tools: [search] });
  }
  t.deepEqual(fieldsOf(NEWER, { web_search: false, web_search_options: {} }), {});
  const location = { type: 'approximate', approximate: { city: 'Oslo', country: 'NO', region: null } };
  t.deepEqual(
    fieldsOf(NEWER, {
      web_search: true,
      web_search_options: { user_location: location },
      tools: [OTHER_TOOL],
    })['tools'],
    [
      { name: 'get_time', input_schema: { type: 'object', properties: {} } },
      { ...search, user_location: { type: 'approximate', city: 'Oslo', country: 'NO' } },
    ],
  );
});

test('a thinking budget leaves tokens for the answer, and is left out if the token limit is too low', (t) => {
  const budget = (reasoning_effort: string | null, max_tokens: number): unknown => {
    const { thinking } = fieldsOf(OLDER, { reasoning_effort, max_tokens });
    return (thinking as { budget_tokens: number } | undefined)?.budget_tokens;
  };
  t.is(budget('minimal', 8192), 1024);
  t.is(budget('low', 64_000), 4096);
  t.is(budget('medium', 64_000), 12_288);
  t.is(budget('high', 64_000), 32_768);
  t.is(budget('max', 64_000), 64_000 - 4096);
  t.is(budget('high', 8192), 8192 - 2048);
  t.is(budget('high', 1366), 1024);
  t.is(budget('high', 1365), undefined);
  t.is(budget('none', 64_000), undefined);
  t.is(budget(null, 64_000), undefined);
  t.is(budget('a level of tomorrow', 64_000), 12_288);
});

test('a forced call and a thinking budget exclude each other: the budget is left out', (t) => {
  t.deepEqual(Object.keys(fieldsOf(OLDER, { ...forced, reasoning_effort: 'high' })), [
    'tools',
    'tool_choice',
    'temperature',
  ]);
  t.true('thinking' in fieldsOf(OLDER, { ...forced, tool_choice: 'auto', reasoning_effort: 'high' }));
  t.true('thinking' in fieldsOf(NEWER, { ...forced, reasoning_effort: 'high' }));
});

test('thinking effort is mapped to the levels of the model', (t) => {
  const effort = (model: string, reasoning_effort: string): unknown =>
    (fieldsOf(model, { reasoning_effort })['output_config'] as { effort: string } | undefined)?.effort;
  t.is(effort(NEWER, 'minimal'), 'low');
  t.is(effort(NEWER, 'xhigh'), 'xhigh');
  t.is(effort('claude-opus-4-6', 'xhigh'), 'high');
  t.is(effort('claude-opus-4-6', 'max'), 'max');
  t.is(effort(NEWER, 'a level of tomorrow'), undefined);
  t.deepEqual(fieldsOf(NEWER, { reasoning_effort: 'medium' }), {
    thinking: { type: 'adaptive', display: 'summarized' },
    output_config: { effort: 'medium' },
  });
});

test('effort none is sent in the form that each model supports', (t) => {
  const none = { reasoning_effort: 'none' };
  t.deepEqual(fieldsOf(NEWER, none), {});
  t.deepEqual(fieldsOf('claude-opus-5', none), { thinking: { type: 'disabled' } });
  t.deepEqual(fieldsOf('claude-haiku-5-5', none), { thinking: { type: 'disabled' } });
  t.deepEqual(fieldsOf('claude-sonnet-5-5', none), { thinking: { type: 'between_tools' } });
  t.deepEqual(fieldsOf(NEWEST, none), {
    thinking: { type: 'adaptive', display: 'omitted' },
    output_config: { effort: 'low' },
  });
  t.false(translate('claude-opus-5', none).thinks);
  // Without an effort the model decides whether to think. From the newest models we request readable thinking.
  t.deepEqual(fieldsOf(NEWER), {});
  t.deepEqual(fieldsOf(NEWEST), { thinking: { type: 'adaptive', display: 'summarized' } });
});

test('the thinking setting of the route takes precedence over the model name', (t) => {
  const budget = fieldsOf('claude-opus-4-6', { reasoning_effort: 'low' }, { target: { thinking: 'budget' } });
  t.deepEqual(budget['thinking'], { type: 'enabled', budget_tokens: 4096 });
  const effort = fieldsOf(OLDER, { reasoning_effort: 'low' }, { target: { thinking: 'effort' } });
  t.like(effort, { thinking: { type: 'adaptive' }, output_config: { effort: 'low' } });
  t.deepEqual(fieldsOf('claude-3-5-haiku-20241022', { reasoning_effort: 'low' }), { temperature: 0.7 });
});

const BLOCK = { type: 'thinking', thinking: 'hm', signature: 'c2ln' };
const remember = (model: string, blocks: unknown = [BLOCK]): object => ({ kind: 'anthropic', model, blocks });
const round = { messages: called, tools: [TOOL, OTHER_TOOL], reasoning_effort: 'low' };

function secondTurn({ body }: MessagesRequest): unknown[] {
  return body.messages[1]?.content.map(({ type }) => type) ?? [];
}

test('an unfinished round of calls uses a thinking budget only if its earlier thinking is remembered', (t) => {
  const known = translate(OLDER, round, { recalled: new Map([['1:a', remember(OLDER)]]) });
  t.true(known.thinks);
  t.deepEqual(known.body.messages[1]?.content[0], BLOCK);
  t.deepEqual(secondTurn(known), ['thinking', 'tool_use', 'tool_use']);
  for (const value of [
    null,
    'garbage',
    remember('claude-sonnet-4-0'),
    { ...remember(OLDER), kind: 'gemini' },
    remember(OLDER, [{ type: 'thinking', thinking: 'unsigned' }]),
    remember(OLDER, 'no list'),
    // The first step called without thinking, so the turn cannot start with any.
    remember(OLDER, []),
  ]) {
    const request = translate(OLDER, round, { recalled: new Map([['1:a', value]]) });
    t.false(request.thinks);
    t.is(request.body['thinking'], undefined);
    t.is(request.body['temperature'], 0.7);
    t.deepEqual(secondTurn(request), ['tool_use', 'tool_use']);
  }
});

test('the thinking of every step of a round must be remembered, even if it is empty; only the first step must contain thinking', (t) => {
  const next = [
    {
      role: 'assistant',
      tool_calls: [{ id: 'c', type: 'function', function: { name: 'get_time', arguments: '{}' } }],
    },
    { role: 'tool', tool_call_id: 'c', content: 'noon' },
  ];
  const steps = { ...round, messages: [...called, ...next] };
  const first = ['1:a', remember(OLDER)] as const;
  const third = nameCall(called.length, 'c');
  t.false(translate(OLDER, steps, { recalled: new Map([first]) }).thinks);
  t.true(translate(OLDER, steps, { recalled: new Map([first, [third, remember(OLDER, [])]]) }).thinks);
  t.false(translate(OLDER, steps, { recalled: new Map([[third, remember(OLDER)]]) }).thinks);
});

test('a finished round includes its thinking if it is remembered, but does not need it', (t) => {
  const finished = {
    ...round,
    messages: [...called, { role: 'assistant', content: 'Sunny.' }, { role: 'user', content: 'Thanks' }],
  };
  t.true(translate(OLDER, finished).thinks);
  t.deepEqual(secondTurn(translate(OLDER, finished)), ['tool_use', 'tool_use']);
  const known = translate(OLDER, finished, { recalled: new Map([['1:a', remember(OLDER)]]) });
  t.deepEqual(secondTurn(known), ['thinking', 'tool_use', 'tool_use']);
});

test('thinking effort is sent even if earlier thinking is lost, and newer models may drop thinking that no longer fits', (t) => {
  t.true(translate(NEWER, round).thinks);
  t.deepEqual(secondTurn(translate(NEWER, round)), ['tool_use', 'tool_use']);
  const older = translate(NEWER, round, { recalled: new Map([['1:a', remember(NEWER)]]) });
  t.deepEqual(secondTurn(older), ['thinking', 'tool_use', 'tool_use']);
  t.deepEqual(older.betas, []);
  const newest = translate(NEWEST, round, { recalled: new Map([['1:a', remember(NEWEST)]]) });
  t.deepEqual(newest.betas, ['thinking-binding-controls-2026-08-01']);
  t.deepEqual(newest.body['thinking'], {
    type: 'adaptive',
    display: 'summarized',
    block_binding: { prefix_mismatch_behavior: 'drop_block' },
  });
  t.deepEqual(translate(NEWEST, round).betas, []);
});

test('thinking of another turn is not sent for a call with the same id', (t) => {
  const elsewhere = translate(OLDER, round, { recalled: new Map([[nameCall(3, 'a'), remember(OLDER)]]) });
  t.false(elsewhere.thinks);
  t.deepEqual(secondTurn(elsewhere), ['tool_use', 'tool_use']);
});

test('output before pauses is sent back unchanged, in one turn even after several pauses', (t) => {
  const request = translate(NEWER, { web_search: true });
  const [one, two] = [
    { type: 'server_tool_use', id: 's1' },
    { type: 'text', text: 'So' },
  ];
  const once = continueRequest(request, [one, { type: 'text', text: '' }], 900)!;
  const twice = continueRequest(once, [two], 700)!;
  t.deepEqual(twice.body.messages.slice(1), [{ role: 'assistant', content: [one, two] }]);
  t.is(request.body.messages.length, 1);
  t.deepEqual({ ...twice.body, messages: [] }, { ...request.body, max_tokens: 700, messages: [] });
});

test('a call after a pause has the remaining token limit, and is not made if no tokens remain', (t) => {
  const plain = translate(NEWER, { web_search: true });
  t.is(continueRequest(plain, [], 1)?.body.max_tokens, 1);
  t.is(continueRequest(plain, [], 0), null);
  const thinking = translate(OLDER, { reasoning_effort: 'low' });
  const budget = (thinking.body['thinking'] as { budget_tokens: number }).budget_tokens;
  t.is(continueRequest(thinking, [], budget), null);
  t.is(continueRequest(thinking, [], budget + 1)?.body.max_tokens, budget + 1);
});
