import test, { type ExecutionContext } from 'ava';

import { type ChatMessage, type LoadedMedia, UpstreamError } from '../../../../workers/upstreams/upstream.ts';
import {
  type AnthropicConversation,
  type MessageOptions,
  toConversation,
} from '../../../../workers/upstreams/anthropic/to-messages.ts';

const PNG = 'data:image/png;base64,iVBORw0KGgo=';

function convert(messages: readonly unknown[], more: Partial<MessageOptions> = {}): AnthropicConversation {
  const options = { media: new Map(), findSavedThinking: () => [], supportsPrefill: true, ...more };
  return toConversation(messages as ChatMessage[], options);
}

function refuse(t: ExecutionContext, messages: readonly unknown[]): string {
  const error = t.throws(() => convert(messages), { instanceOf: UpstreamError });
  t.is(error.failure, 'rejected');
  return error.message;
}

const text = (words: string): object => ({ type: 'text', text: words });
const user = (content: unknown): object => ({ role: 'user', content });
const call = (id: string, name = 'f', args: unknown = '{}'): object => ({
  id,
  type: 'function',
  function: { name, arguments: args },
});
const calls = (...made: object[]): object => ({ role: 'assistant', content: null, tool_calls: made });
const result = (id: string, content: unknown = 'done'): object => ({
  role: 'tool',
  tool_call_id: id,
  content,
});

test('leading instructions become the system prompt, and later ones stay in place as user text', (t) => {
  const { system, turns } = convert([
    { role: 'system', content: 'Be brief.' },
    { role: 'developer', content: [text('Be kind.'), text('  '), text('Be wise.')] },
    user('Hi'),
    { role: 'assistant', content: 'Hello.' },
    { role: 'system', content: 'Now in French.' },
    user('Bye'),
  ]);
  t.deepEqual(system, [text('Be brief.'), text('Be kind.\nBe wise.')]);
  t.deepEqual(turns, [
    { role: 'user', content: [text('Hi')] },
    { role: 'assistant', content: [text('Hello.')] },
    { role: 'user', content: [text('<system>\nNow in French.\n</system>'), text('Bye')] },
  ]);
});

test('the last of several instructions is sent as the user turn if there is nothing else', (t) => {
  const messages = [
    { role: 'system', content: 'Be brief.' },
    { role: 'system', content: 'Tell a joke.' },
  ];
  const { system, turns } = convert(messages);
  t.deepEqual(system, [text('Be brief.')]);
  t.deepEqual(turns, [{ role: 'user', content: [text('Tell a joke.')] }]);
});

test('consecutive turns of one role are merged, empty texts are left out, and the first turn is the user’s', (t) => {
  t.deepEqual(
    convert([
      { role: 'assistant', content: 'Hello, how can I help?' },
      user(''),
      { role: 'assistant', content: [text('\n')] },
      user('One'),
      user([text('two'), text('')]),
    ]).turns,
    [
      { role: 'user', content: [text('(The conversation begins.)')] },
      { role: 'assistant', content: [text('Hello, how can I help?')] },
      { role: 'user', content: [text('One'), text('two')] },
    ],
  );
  t.regex(refuse(t, [user(' '), { role: 'assistant', content: '' }]), /contain no text/);
});

test('turns separated only by an empty one are merged as well', (t) => {
  const { turns } = convert([user('one'), { role: 'assistant', content: ' ' }, user('two')]);
  t.deepEqual(turns, [{ role: 'user', content: [text('one'), text('two')] }]);
});

test('user names are included only if the messages have several different ones', (t) => {
  const namedUser = (name: string, content: string): object => ({ role: 'user', name, content });
  t.deepEqual(convert([namedUser('Ann', 'Hi'), namedUser('Bob', 'Ho'), user('He')]).turns, [
    { role: 'user', content: [text('Ann:'), text('Hi'), text('Bob:'), text('Ho'), text('He')] },
  ]);
  t.deepEqual(convert([namedUser('Ann', 'Hi'), namedUser('Ann', 'Ho')]).turns, [
    { role: 'user', content: [text('Hi'), text('Ho')] },
  ]);
});

test('a final assistant message is sent as a prefill; if the model does not support that, a request to continue is added', (t) => {
  const messages = [user('A poem.'), { role: 'assistant', content: 'Roses are \n' }];
  t.deepEqual(convert(messages).turns.at(-1), { role: 'assistant', content: [text('Roses are')] });
  t.deepEqual(convert(messages, { supportsPrefill: false }).turns.slice(1), [
    { role: 'assistant', content: [text('Roses are \n')] },
    { role: 'user', content: [text('(Continue.)')] },
  ]);
});

test('all results are in the turn after their calls, in call order, before other content of that turn', (t) => {
  const { turns, calledNames } = convert([
    user('Weather?'),
    {
      role: 'assistant',
      content: 'Let me look.',
      tool_calls: [call('a', 'get_weather', '{"city":"Paris"}'), call('b', 'get_time', '')],
    },
    result('b', [text('noon'), { type: 'image_url', image_url: { url: 'https://x.test/clock.png' } }]),
    result('a', 'sunny'),
    user('And?'),
  ]);
  t.deepEqual(turns.slice(1), [
    {
      role: 'assistant',
      content: [
        text('Let me look.'),
        { type: 'tool_use', id: 'a', name: 'get_weather', input: { city: 'Paris' } },
        { type: 'tool_use', id: 'b', name: 'get_time', input: {} },
      ],
    },
    {
      role: 'user',
      content: [
        { type: 'tool_result', tool_use_id: 'a', content: 'sunny' },
        {
          type: 'tool_result',
          tool_use_id: 'b',
          content: [
            text('noon'),
            { type: 'image', source: { type: 'url', url: 'https://x.test/clock.png' } },
          ],
        },
        text('And?'),
      ],
    },
  ]);
  t.deepEqual([...calledNames], ['get_weather', 'get_time']);
});

test('an empty tool result is accepted', (t) => {
  t.deepEqual(convert([user('x'), calls(call('a')), result('a', '')]).turns.at(-1), {
    role: 'user',
    content: [{ type: 'tool_result', tool_use_id: 'a' }],
  });
});

test('a call without a result and a result without a call are rejected, and the error names them', (t) => {
  t.is(
    refuse(t, [user('x'), calls(call('a'), call('b')), result('a')]),
    "messages[1].tool_calls[1]: the tool call 'b' is not followed by a tool message with its result.",
  );
  t.regex(
    refuse(t, [user('x'), calls(call('a')), { role: 'assistant', content: 'y' }]),
    /'a' is not followed by/,
  );
  t.regex(refuse(t, [user('x'), result('a')]), /^messages\[1\]: tool_call_id 'a' does not match a tool call/);
  t.regex(refuse(t, [user('x'), calls(call('a')), result('a'), result('a')]), /^messages\[3\]: .*already/);
  t.regex(
    refuse(t, [user('x'), calls(call('a')), result('a'), { role: 'assistant', content: 'y' }, result('a')]),
    /does not match a tool call/,
  );
  t.regex(refuse(t, [user('x'), calls({ function: { name: 'f' } })]), /needs an id/);
});

test('arguments are rejected only if they are nested too deeply for a request', (t) => {
  const nest = (depth: number): string => `${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}`;
  for (const depth of [101, 100_000]) {
    const message = refuse(t, [user('Hi'), calls(call('a', 'f', nest(depth))), result('a')]);
    t.is(message, "messages[1].tool_calls[0] (f, 'a'): its arguments are nested too deeply.");
  }
  t.notThrows(() => convert([user('Hi'), calls(call('a', 'f', nest(100))), result('a', nest(100_000))]));
});

test('arguments that are not a JSON object are rejected with the name of the call', (t) => {
  t.is(
    refuse(t, [user('x'), calls(call('a', 'f', '{"half"')), result('a')]),
    "messages[1].tool_calls[0] (f, 'a'): its arguments are not JSON.",
  );
  t.regex(refuse(t, [user('x'), calls(call('a', 'f', '[1]')), result('a')]), /not a JSON object/);
});

test('unsupported and repeated call ids are changed, in calls and results alike', (t) => {
  const { turns } = convert([
    user('x'),
    calls(call('functions.f:0')),
    result('functions.f:0'),
    calls(call('functions.f:0')),
    result('functions.f:0'),
  ]);
  const ids = turns.flatMap(({ content }) =>
    content.flatMap((block) => block['id'] ?? block['tool_use_id'] ?? []),
  );
  t.deepEqual(ids, ['functions_f_0', 'functions_f_0', 'functions_f_0_2', 'functions_f_0_2']);

  const given = ['a_2', 'a', 'a', 'a_2', 'a', 'a.2', 'a_2_2'];
  const rounds = given.flatMap((id) => [calls(call(id)), result(id)]);
  const blocks = convert([user('x'), ...rounds]).turns.flatMap(({ content }) => content);
  const sent = ['a_2', 'a', 'a_3', 'a_2_2', 'a_4', 'a_2_3', 'a_2_2_2'];
  t.deepEqual(
    blocks.flatMap((block) => block['id'] ?? []),
    sent,
  );
  t.deepEqual(
    blocks.flatMap((block) => block['tool_use_id'] ?? []),
    sent,
  );
});

test('images are sent as links, or as loaded bytes with the type of those bytes', (t) => {
  const media = new Map<string, LoadedMedia>([[PNG, { mediaType: 'image/webp', base64: 'UklGRg==' }]]);
  const content = [
    { type: 'image_url', image_url: { url: 'https://x.test/a.png' } },
    { image_url: { url: PNG } },
  ];
  t.deepEqual(convert([user(content)], { media }).turns[0]?.content, [
    { type: 'image', source: { type: 'url', url: 'https://x.test/a.png' } },
    { type: 'image', source: { type: 'base64', media_type: 'image/webp', data: 'UklGRg==' } },
  ]);
});

test('PDFs are sent unchanged and texts decoded; other files and audio are rejected', (t) => {
  const file = (data: string, filename?: string): object =>
    user([{ type: 'file', file: { file_data: data, filename } }]);
  const [pdf] = convert([file('data:application/pdf;base64,JVBERi0=', 'a.pdf')]).turns[0]?.content ?? [];
  t.deepEqual(pdf, {
    type: 'document',
    source: { type: 'base64', media_type: 'application/pdf', data: 'JVBERi0=' },
    title: 'a.pdf',
  });
  const words = Buffer.from('Grüße').toString('base64');
  const [plain] = convert([file(`data:text/markdown;charset=utf-8;base64,${words}`)]).turns[0]?.content ?? [];
  t.deepEqual(plain, { type: 'document', source: { type: 'text', media_type: 'text/plain', data: 'Grüße' } });
  t.is(
    refuse(t, [user('x'), file('data:application/zip;base64,UEs=')]),
    'messages[1]: this model accepts only PDF and text files, not application/zip.',
  );
  t.regex(refuse(t, [file('data:text/plain;base64,')]), /empty/);
  t.regex(refuse(t, [file('data:text/plain,hello')]), /a base64 data URI/);
  t.regex(refuse(t, [user([{ type: 'file', file: { file_id: 'file-1' } }])]), /data URI/);
  t.regex(
    refuse(t, [user([{ type: 'input_audio', input_audio: { data: '', format: 'mp3' } }])]),
    /does not accept content of type input_audio/,
  );
});

test('remembered thinking comes first in the turn of its calls', (t) => {
  const block = { type: 'thinking', thinking: 'hm', signature: 'c2ln' };
  const { turns } = convert(
    [
      user('x'),
      { role: 'assistant', content: 'Wait.' },
      { role: 'assistant', content: 'So:', tool_calls: [call('a')] },
      result('a'),
    ],
    { findSavedThinking: (messageIndex) => (messageIndex === 2 ? [block] : []) },
  );
  t.deepEqual(turns[1]?.content, [
    block,
    text('Wait.'),
    text('So:'),
    { type: 'tool_use', id: 'a', name: 'f', input: {} },
  ]);
});
