import test from 'ava';

import { makePng } from '../../../../scripts/vendor-simulator/tiny-png.ts';
import {
  type CallOptions,
  dig,
  digText,
  digList,
  type Json,
  readJson,
  startDialectClients,
} from '../../../support/simulated-dialects.ts';

const HELLO = { role: 'user', content: 'hello there' };
const TOOL = {
  name: 'look',
  input_schema: { type: 'object', properties: { at: { type: 'string' } }, required: ['at'] },
};
const THINKING = { type: 'enabled', budget_tokens: 1024 };
const USE = { type: 'tool_use', id: 'toolu_1', name: 'look', input: { at: 'x' } };
const RESULT = { type: 'tool_result', tool_use_id: 'toolu_1', content: 'sunny' };
const PNG = makePng(2, 2, [1, 2, 3]).toString('base64');

const userRequest = (content: unknown): Json => ({ messages: [{ role: 'user', content }] });
const image = (media_type: string, data: string): Json =>
  userRequest([{ type: 'image', source: { type: 'base64', media_type, data } }]);
const withAssistantTurn = (...blocks: Json[]): Json[] => [HELLO, { role: 'assistant', content: blocks }];

/** What is wrong with the request, the request, and the vendor's error message. */
const rejectedRequests: readonly [string, Json, RegExp][] = [
  ['no limit', { messages: [HELLO], max_tokens: undefined }, /^max_tokens: Field required$/],
  ['a limit of 0', { messages: [HELLO], max_tokens: 0 }, /^max_tokens: /],
  ['an unknown field', { messages: [HELLO], n: 1 }, /^n: Extra inputs are not permitted$/],
  ['an unknown field of a message', { messages: [{ ...HELLO, name: 'x' }] }, /^messages\.0\.name: Extra/],
  ['no messages', { messages: [] }, /at least one message/],
  ['a system message', { messages: [{ role: 'system', content: 'x' }, HELLO] }, /top-level `system`/],
  [
    'a first message from the model',
    { messages: [{ role: 'assistant', content: 'x' }, HELLO] },
    /first message must use/,
  ],
  ['empty content', userRequest(''), /non-empty content/],
  ['an empty text', userRequest([{ type: 'text', text: '' }]), /text content blocks must be non-empty/],
  ['only white space', userRequest([{ type: 'text', text: ' \n' }]), /non-whitespace/],
  [
    'an empty system prompt',
    { messages: [HELLO], system: [{ type: 'text', text: '' }] },
    /^system: text content/,
  ],
  ['an unknown block', userRequest([{ type: 'input_audio' }]), /Input tag 'input_audio'/],
  [
    'an unknown field of a block',
    userRequest([{ type: 'text', text: 'x', name: 'y' }]),
    /content\.0\.text\.name: Extra/,
  ],
  [
    'an image from the model',
    { messages: withAssistantTurn({ type: 'image', source: {} }) },
    /only be in `user` messages/,
  ],
  [
    'a temperature that is too high',
    { messages: [HELLO], temperature: 1.5 },
    /^temperature: .*less than or equal to 1$/,
  ],
  [
    'a negative temperature',
    { messages: [HELLO], temperature: -0.1 },
    /^temperature: .*greater than or equal to 0$/,
  ],
  [
    'a budget that is too small',
    { messages: [HELLO], thinking: { ...THINKING, budget_tokens: 1023 } },
    /equal to 1024$/,
  ],
  [
    'a budget equal to the limit',
    { messages: [HELLO], max_tokens: 1024, thinking: THINKING },
    /must be greater than/,
  ],
  ['no budget', { messages: [HELLO], thinking: { type: 'enabled' } }, /budget_tokens: Field required/],
  [
    'a budget with adaptive thinking',
    { messages: [HELLO], thinking: { ...THINKING, type: 'adaptive' } },
    /adaptive\.budget/,
  ],
  ['thinking without a type', { messages: [HELLO], thinking: { type: 'hard' } }, /Input tag 'hard'/],
  [
    'thinking and temperature',
    { messages: [HELLO], thinking: THINKING, temperature: 0.5 },
    /may only be set to 1/,
  ],
  ['thinking and top_k', { messages: [HELLO], thinking: THINKING, top_k: 5 }, /`top_k` must be unset/],
  [
    'thinking and a forced tool',
    { messages: [HELLO], thinking: THINKING, tools: [TOOL], tool_choice: { type: 'any' } },
    /forces tool use/,
  ],
  [
    'a new model’s temperature',
    { model: 'claude-new-1', messages: [HELLO], temperature: 1 },
    /`temperature` is dep/,
  ],
  ['a new model’s top_p', { model: 'claude-new-1', messages: [HELLO], top_p: 0.99 }, /`top_p` is deprecated/],
  ['a new model’s top_k', { model: 'claude-new-1', messages: [HELLO], top_k: 5 }, /`top_k` is deprecated/],
  [
    'a new model’s budget',
    { model: 'claude-new-1', messages: [HELLO], thinking: THINKING },
    /"thinking.type.enabled"/,
  ],
  [
    'an unknown effort',
    { messages: [HELLO], output_config: { effort: 'minimal' } },
    /^output_config\.effort/,
  ],
  [
    'a format with a name',
    { messages: [HELLO], output_config: { format: { type: 'json_schema', schema: {}, name: 'x' } } },
    /format\.name: Extra/,
  ],
  ['a blank stop sequence', { messages: [HELLO], stop_sequences: ['\n'] }, /^stop_sequences/],
  ['a tool without schema', { messages: [HELLO], tools: [{ name: 'look' }] }, /input_schema: Field required/],
  [
    'a schema without type',
    { messages: [HELLO], tools: [{ name: 'a', input_schema: {} }] },
    /schema\.type: Field/,
  ],
  ["a tool in OpenAI's format", { messages: [HELLO], tools: [{ type: 'function' }] }, /Input tag 'function'/],
  ['a name with a dot', { messages: [HELLO], tools: [{ ...TOOL, name: 'a.b' }] }, /should match pattern/],
  ['tools with the same name', { messages: [HELLO], tools: [TOOL, TOOL] }, /names must be unique/],
  ['a choice without a tool', { messages: [HELLO], tool_choice: { type: 'auto' } }, /while providing tools/],
  [
    'a choice of an unknown tool',
    { messages: [HELLO], tools: [TOOL], tool_choice: { type: 'tool', name: 'x' } },
    /'x' not found/,
  ],
  [
    'a call without a result',
    { messages: [...withAssistantTurn(USE), HELLO] },
    /without `tool_result` blocks.*toolu_1/,
  ],
  ['a call at the end', { messages: withAssistantTurn(USE) }, /without `tool_result` blocks/],
  [
    'a result after text',
    {
      messages: [...withAssistantTurn(USE), { role: 'user', content: [{ type: 'text', text: 'x' }, RESULT] }],
    },
    /without `tool_result` blocks/,
  ],
  [
    'two results for one call',
    { messages: [...withAssistantTurn(USE), { role: 'user', content: [RESULT, RESULT] }] },
    /single result/,
  ],
  ['a result without a call', userRequest([RESULT]), /unexpected `tool_use_id`.*toolu_1/],
  [
    'an id used twice',
    {
      messages: [
        ...withAssistantTurn(USE),
        { role: 'user', content: [RESULT] },
        { role: 'assistant', content: [USE] },
        { role: 'user', content: [RESULT] },
      ],
    },
    /ids must be unique/,
  ],
  [
    'an id with a dot',
    { messages: withAssistantTurn({ ...USE, id: 'a.b' }) },
    /tool_use\.id: String should match/,
  ],
  [
    'an input that is a string',
    { messages: withAssistantTurn({ ...USE, input: '{}' }) },
    /input: Input should be a valid dict/,
  ],
  [
    'thinking without a thinking block before a result',
    {
      messages: [...withAssistantTurn(USE), { role: 'user', content: [RESULT] }],
      tools: [TOOL],
      thinking: THINKING,
    },
    /^messages\.1\.content\.0\.type: Expected `thinking`/,
  ],
  [
    'a thinking block with a foreign signature',
    { messages: [...withAssistantTurn({ type: 'thinking', thinking: 'x', signature: 'y' }), HELLO] },
    /Invalid `signature` in `thinking` block/,
  ],
  ['a media type that differs from the image', image('image/jpeg', PNG), /appears to be a image\/png image/],
  ['an unsupported media type', image('image/bmp', PNG), /media_type: Input should be/],
  ['bytes that are not an image', image('image/png', 'aGVsbG8='), /Could not process image/],
  ['text that is not base64', image('image/png', '?'), /invalid base64/],
  [
    'a link to a file',
    userRequest([{ type: 'image', source: { type: 'url', url: 'file:///x' } }]),
    /HTTP\(S\)/,
  ],
  [
    'trailing white space',
    { messages: [HELLO, { role: 'assistant', content: 'so ' }] },
    /trailing whitespace/,
  ],
];

for (const [what, body, words] of rejectedRequests) {
  test(`rejected: ${what}`, async (t) => {
    const { askAnthropic } = await startDialectClients(t);
    const response = await askAnthropic(body);
    const answer = await readJson(response);
    t.is(response.status, 400);
    t.like(answer, { type: 'error', error: { type: 'invalid_request_error' } });
    t.regex(digText(answer, 'error', 'message'), words);
    t.is(answer['request_id'], response.headers.get('request-id'));
  });
}

test('a call without a key or version is rejected', async (t) => {
  const { askAnthropic } = await startDialectClients(t);
  const body = { messages: [HELLO] };
  const send = async (options: CallOptions): Promise<unknown[]> => {
    const response = await askAnthropic(body, options);
    return [response.status, dig(await readJson(response), 'error', 'type')];
  };
  t.deepEqual(await send({ key: null }), [401, 'authentication_error']);
  t.deepEqual(await send({ headers: { 'anthropic-version': 'new' } }), [400, 'invalid_request_error']);
  t.deepEqual(await send({ key: null, headers: { authorization: 'Bearer sk' } }), [200, undefined]);
});

test('requests that the vendor accepts are accepted', async (t) => {
  const { askAnthropic } = await startDialectClients(t);
  const acceptedRequests: readonly Json[] = [
    { messages: [HELLO, HELLO, { role: 'assistant', content: 'so' }, HELLO] },
    { messages: [HELLO], temperature: 1, top_p: 0.95, thinking: THINKING },
    { messages: [HELLO], system: [{ type: 'text', text: 'x', cache_control: { type: 'ephemeral' } }] },
    {
      model: 'claude-new-1',
      messages: [HELLO],
      thinking: { type: 'adaptive' },
      output_config: { effort: 'low' },
    },
    image('image/png', PNG),
    userRequest([
      { type: 'image', source: { type: 'url', url: 'https://pictures.example/x.png' } },
      { type: 'document', source: { type: 'base64', media_type: 'application/pdf', data: 'JVBERi0=' } },
      { type: 'text', text: 'what is this' },
    ]),
    // A tool result and the next user text may be separate messages, which count as one turn.
    { messages: [...withAssistantTurn(USE), { role: 'user', content: [RESULT] }, HELLO], tools: [TOOL] },
  ];
  for (const body of acceptedRequests) {
    const response = await askAnthropic(body);
    t.is(response.status, 200, await response.text());
  }
});

test('thinking blocks must be returned unchanged, or not at all', async (t) => {
  const { askAnthropic } = await startDialectClients(t);
  const request = { tools: [TOOL], thinking: THINKING };
  const first = await readJson(await askAnthropic({ ...request, messages: [HELLO] }));
  const [thinking = {}, use = {}] = digList(first, 'content');
  t.is(thinking['type'], 'thinking');
  const result = { role: 'user', content: [{ ...RESULT, tool_use_id: use['id'] }] };
  const continueWith = async (
    content: readonly Json[],
    thinkingOfRequest: Json | undefined,
  ): Promise<number> => {
    const messages = [HELLO, { role: 'assistant', content }, result];
    return (await askAnthropic({ ...request, thinking: thinkingOfRequest, messages })).status;
  };
  t.is(await continueWith([thinking, use], THINKING), 200);
  t.is(await continueWith([{ ...thinking, thinking: 'Something else.' }, use], THINKING), 400);
  t.is(await continueWith([use], THINKING), 400);
  t.is(await continueWith([use], undefined), 200);
  t.is(await continueWith([use], { type: 'adaptive' }), 200);
});
