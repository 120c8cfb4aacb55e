import test from 'ava';
import {
  hashCall,
  hashConversation,
  hashInstructions,
  placeCalls,
  type HashedMessage,
} from '../../../shared/reasoning/conversation-hash.ts';

const user = (content: unknown): HashedMessage => ({ role: 'user', content });
const called = (id: string, text = '{"a":1,"b":[2]}', content: unknown = null): HashedMessage => ({
  role: 'assistant',
  content,
  tool_calls: [{ id, type: 'function', function: { name: 'f', arguments: text } }],
});
const answer = (id: string, content = 'ok'): HashedMessage => ({ role: 'tool', tool_call_id: id, content });
const hashesOf = (messages: HashedMessage[], model = 'm'): string[] =>
  placeCalls(messages, model).map(({ hash }) => hash);

test('a call is found again by the conversation it was made in', (t) => {
  const asked = [user('go')];
  const call = { id: 'f:0', name: 'f', arguments: '{"a":1,"b":[2]}' };
  const saved = hashCall(hashConversation(asked), 'm', call);
  t.deepEqual(placeCalls([...asked, called('f:0'), answer('f:0')], 'm'), [
    { messageIndex: 1, toolCallId: 'f:0', hash: saved, instructionsHash: hashInstructions(asked) },
  ]);
});

test('an id that a vendor gives again names another turn in another conversation, place, model or call', (t) => {
  const conversations = [
    hashesOf([user('go'), called('f:0')]),
    hashesOf([user('stop'), called('f:0')]),
    hashesOf([user('go'), called('f:0')], 'other'),
    hashesOf([user('go'), called('f:0', '{"a":2}')]),
    hashesOf([user('go'), called('f:0'), answer('f:0'), called('f:0')]).slice(1),
    hashesOf([user('go'), called('f:0'), answer('f:0', 'no'), called('f:0')]).slice(1),
    hashesOf([user([{ type: 'image_url', image_url: { url: 'https://a.test/a.png' } }]), called('f:0')]),
    hashesOf([user([{ type: 'image_url', image_url: { url: 'https://a.test/b.png' } }]), called('f:0')]),
  ].flat();
  t.is(conversations.length, 8);
  t.is(new Set(conversations).size, 8);
});

test('what clients write differently and mean the same is the same conversation', (t) => {
  const first = [user('go on'), called('f:0', '{"a":1,"b":[2]}', null), answer('f:0'), called('f:0')];
  const others: HashedMessage[][] = [
    [
      user([{ type: 'text', text: 'go on' }]),
      called('f:0', '{"a":1,"b":[2]}', ''),
      answer('f:0'),
      called('f:0'),
    ],
    [
      user([{ text: 'go ' }, { text: 'on' }]),
      called('f:0', '{"a":1,"b":[2]}', []),
      answer('f:0'),
      called('f:0'),
    ],
    [user('go on'), called('f:0', '{ "b": [2],\n "a": 1.0 }'), answer('f:0'), called('f:0')],
    [
      { role: 'system', content: 'It is Monday.' },
      user('go on'),
      { ...called('f:0'), reasoning_content: 'Hm.' } as HashedMessage,
      { role: 'developer', content: 'Be brief.' },
      answer('f:0'),
      called('f:0'),
    ],
  ];
  for (const other of others) t.deepEqual(hashesOf(other), hashesOf(first));
});

test('arguments that are no JSON, or nested without end, are compared as they are written', (t) => {
  const deep = '['.repeat(200_000);
  t.is(hashesOf([user('go'), called('a', 'not json')]).length, 1);
  t.is(hashesOf([user('go'), called('a', deep + ']'.repeat(200_000))]).length, 1);
  t.not(hashesOf([user('go'), called('a', 'one')])[0], hashesOf([user('go'), called('a', 'two')])[0]);
});

test('the instructions of a call are those that stood before it', (t) => {
  const system = (content: unknown): HashedMessage => ({ role: 'system', content });
  const asked = [system('The user is Ann.'), user('go')];
  const later = { role: 'developer', content: 'Be brief.' };
  const [first, second] = placeCalls([...asked, called('f:0'), answer('f:0'), later, called('f:1')], 'm');
  t.is(first!.instructionsHash, hashInstructions(asked));
  t.is(first!.instructionsHash, hashInstructions([system([{ type: 'text', text: 'The user is Ann.' }])]));
  t.is(second!.instructionsHash, hashInstructions([...asked, later]));
  const others = [[user('go')], [system('The user is Bob.'), user('go')], [...asked, later]];
  t.is(new Set([asked, ...others].map(hashInstructions)).size, 4);
});
