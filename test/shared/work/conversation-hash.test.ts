import test from 'ava';
import {
  hashCall,
  hashConversation,
  locateCalls,
  type HashedMessage,
  type HashedRequest,
  type LocatedCall,
} from '../../../shared/work/conversation-hash.ts';

const user = (content: unknown): HashedMessage => ({ role: 'user', content });
const system = (content: unknown): HashedMessage => ({ role: 'system', content });
const callMessage = (id: string, text = '{"a":1,"b":[2]}', content: unknown = null): HashedMessage => ({
  role: 'assistant',
  content,
  tool_calls: [{ id, type: 'function', function: { name: 'f', arguments: text } }],
});
const resultMessage = (id: string, content = 'ok'): HashedMessage => ({
  role: 'tool',
  tool_call_id: id,
  content,
});
const locate = (request: HashedRequest, model: string): LocatedCall[] =>
  Array.from(locateCalls(request, model)).flatMap(({ calls }) => calls);
const hashCalls = (
  messages: readonly HashedMessage[],
  model = 'm',
  more: Omit<HashedRequest, 'messages'> = {},
): string[] => locate({ ...more, messages }, model).map(({ hash }) => hash);
/** Ids in this gateway's format and in Anthropic's. */
const uniqueIds = [
  'call_gw_0123456789abcdef0123456789abcdef',
  'toolu_01A09q90qw90lq917835lq9k',
  'toolu_bdrk_01A09q90qw90lq917835lq9k',
];

test('a call is found again by the hash of the conversation up to it, in requests that continue the conversation', (t) => {
  const messages = [system('The user is Ann.'), user('go')];
  const more = { user: 'ann', tools: [{ type: 'function', function: { name: 'f' } }] };
  for (const id of ['f:0', ...uniqueIds]) {
    const call = { id, name: 'f', arguments: '{"a":1,"b":[2]}' };
    const saved = hashCall(hashConversation({ ...more, messages }), 'm', call);
    t.deepEqual(locate({ ...more, messages: [...messages, callMessage(id), resultMessage(id)] }, 'm'), [
      { messageIndex: 2, toolCallId: id, hash: saved },
    ]);
  }
});

test('the same id has a different hash in another conversation, position, model or call', (t) => {
  const conversations = [
    hashCalls([user('go'), callMessage('f:0')]),
    hashCalls([user('stop'), callMessage('f:0')]),
    hashCalls([user('go'), callMessage('f:0')], 'other'),
    hashCalls([user('go'), callMessage('f:0', '{"a":2}')]),
    hashCalls([user('go'), callMessage('f:0'), resultMessage('f:0'), callMessage('f:0')]).slice(1),
    hashCalls([user('go'), callMessage('f:0'), resultMessage('f:0', 'no'), callMessage('f:0')]).slice(1),
    hashCalls([
      user([{ type: 'image_url', image_url: { url: 'https://a.test/a.png' } }]),
      callMessage('f:0'),
    ]),
    hashCalls([
      user([{ type: 'image_url', image_url: { url: 'https://a.test/b.png' } }]),
      callMessage('f:0'),
    ]),
  ].flat();
  t.is(conversations.length, 8);
  t.is(new Set(conversations).size, 8);
});

test('conversations with the same meaning have the same hash, even if clients write them differently', (t) => {
  const first = [
    user('go on'),
    callMessage('f:0', '{"a":1,"b":[2]}', null),
    resultMessage('f:0'),
    callMessage('f:0'),
  ];
  const others: HashedMessage[][] = [
    [
      user([{ type: 'text', text: 'go on' }]),
      callMessage('f:0', '{"a":1,"b":[2]}', ''),
      resultMessage('f:0'),
      callMessage('f:0'),
    ],
    [
      user([{ text: 'go ' }, { text: 'on' }]),
      callMessage('f:0', '{"a":1,"b":[2]}', []),
      resultMessage('f:0'),
      callMessage('f:0'),
    ],
    [user('go on'), callMessage('f:0', '{ "b": [2],\n "a": 1.0 }'), resultMessage('f:0'), callMessage('f:0')],
  ];
  for (const other of others) t.deepEqual(hashCalls(other), hashCalls(first));
});

test('arguments that are not JSON, or are nested too deeply, are compared as written', (t) => {
  const deep = '['.repeat(200_000);
  t.is(hashCalls([user('go'), callMessage('a', 'not json')]).length, 1);
  t.is(hashCalls([user('go'), callMessage('a', deep + ']'.repeat(200_000))]).length, 1);
  t.not(
    hashCalls([user('go'), callMessage('a', 'one')])[0],
    hashCalls([user('go'), callMessage('a', 'two')])[0],
  );
});

test('an id that may be reused has a different hash for another speaker, setting or thinking', (t) => {
  const question = [system('The user is Ann.'), user('go')];
  const turns = [
    hashCalls([...question, callMessage('f:0')]),
    hashCalls([user('go'), callMessage('f:0')]),
    hashCalls([system('The user is Bob.'), user('go'), callMessage('f:0')]),
    hashCalls([{ ...question[0]!, name: 'bob' }, user('go'), callMessage('f:0')]),
    hashCalls([question[0]!, { ...user('go'), name: 'bob' }, callMessage('f:0')]),
    hashCalls([...question, { role: 'assistant', refusal: 'no' }, callMessage('f:0')]),
    hashCalls([...question, { role: 'assistant', audio: { id: 'said' } }, callMessage('f:0')]),
    hashCalls([...question, { role: 'assistant' }, callMessage('f:0')]),
    hashCalls([...question, { role: 'assistant', reasoning_content: 'Bob asks.' }, callMessage('f:0')]),
    hashCalls([...question, callMessage('f:0')], 'm', { user: 'bob' }),
    hashCalls([...question, callMessage('f:0')], 'm', { safety_identifier: 'bob' }),
    hashCalls([...question, callMessage('f:0')], 'm', { prompt_cache_key: 'bob' }),
    hashCalls([...question, callMessage('f:0')], 'm', {
      tools: [{ function: { description: 'Pays Bob.' } }],
    }),
    hashCalls([...question, callMessage('f:0')], 'm', { response_format: { title: 'For Bob' } }),
    hashCalls([...question, callMessage('f:0')], 'm', { web_search_options: { user_location: 'Oslo' } }),
  ].flat();
  t.is(new Set(turns).size, 15);
});

test('a call with a unique id has the same hash for any instructions, with and without earlier thinking', (t) => {
  for (const id of uniqueIds) {
    const [plain] = hashCalls([user('go'), callMessage('f:0'), resultMessage('f:0'), callMessage(id)]).slice(
      1,
    );
    const dated = [
      system('It is Monday.'),
      user('go'),
      callMessage('f:0'),
      resultMessage('f:0'),
      callMessage(id),
    ];
    t.is(hashCalls(dated, 'm', { tools: [] })[1], plain);
    const thought = { ...callMessage('f:0'), reasoning_content: 'Hm.' };
    t.is(hashCalls([user('go'), thought, resultMessage('f:0'), callMessage(id)])[1], plain);
    t.not(
      hashCalls([
        { ...user('go'), name: 'bob' },
        callMessage('f:0'),
        resultMessage('f:0'),
        callMessage(id),
      ])[1],
      plain,
    );
  }
});

test('an id counts as unique only if its whole format matches', (t) => {
  for (const id of [
    'toolu_0',
    'call_gw_0',
    'toolu_functions.f:00000000000000',
    'toolu_get_balance_of_customer_0',
    'call_00_7wHoE4xFbsPmvQkRlJ9z2dTy',
  ])
    t.not(hashCalls([system('Ann'), callMessage(id)])[0], hashCalls([system('Bob'), callMessage(id)])[0], id);
});

test('in long arguments, whitespace outside of strings makes no difference', (t) => {
  const value = { text: 'a "b" \\ c '.repeat(5_000), list: [1, 2, { key: ' x ' }] };
  const messages = (text: string): HashedMessage[] => [
    user('go'),
    callMessage('f:0', text),
    resultMessage('f:0'),
  ];
  const [plain, indented, other] = [
    JSON.stringify(value),
    JSON.stringify(value, null, 2),
    JSON.stringify({ ...value, list: [1, 2, { key: 'x ' }] }),
  ].map((text) => hashCalls(messages(text)));
  t.deepEqual(indented, plain);
  t.notDeepEqual(other, plain);
});
