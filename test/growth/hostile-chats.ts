import type { ChatRequest } from '../../shared/contract/chat.ts';

const list = <T>(count: number, make: (i: number) => T): T[] =>
  Array.from({ length: count }, (_, i) => make(i));
const call = (id: string, name = 'f') => ({ id, type: 'function', function: { name, arguments: '{}' } });
const chat = (messages: readonly object[], more: object = {}): ChatRequest =>
  ({ model: 'm', messages, ...more }) as unknown as ChatRequest;
const chatWithArguments = (text: string): ChatRequest =>
  chat([
    user,
    {
      role: 'assistant',
      content: null,
      tool_calls: [{ id: 'c', type: 'function', function: { name: 'f', arguments: text } }],
    },
    { role: 'tool', tool_call_id: 'c', content: text },
  ]);
const olderCall = { role: 'assistant', content: null, function_call: { name: 'f', arguments: '' } };
const user = { role: 'user', content: 'a' };

/** Chats that have many of one thing. Each is valid. */
export const hostileChats: Readonly<Record<string, (count: number) => ChatRequest>> = {
  'messages of one role': (count) => chat(list(count, () => user)),
  'messages of two roles in turn': (count) =>
    chat(list(count, (i) => ({ role: i % 2 === 0 ? 'user' : 'assistant', content: `a${i}` }))),
  instructions: (count) => chat([...list(count, (i) => ({ role: 'system', content: `a${i}` })), user]),
  'instructions between messages': (count) =>
    chat(list(count, (i) => ({ role: i % 2 === 0 ? 'user' : 'developer', content: 'a' }))),
  'named users': (count) => chat(list(count, (i) => ({ role: 'user', name: `n${i}`, content: 'a' }))),
  'parts of one message': (count) =>
    chat([{ role: 'user', content: list(count, (i) => ({ type: 'text', text: `a${i}` })) }]),
  'empty parts': (count) =>
    chat([{ role: 'user', content: list(count, () => ({ type: 'text', text: '' })) }, user]),
  'different images': (count) =>
    chat([
      {
        role: 'user',
        content: list(count, (i) => ({
          type: 'image_url',
          image_url: { url: `https://example.com/${i}.png` },
        })),
      },
    ]),
  'the same image': (count) =>
    chat([
      {
        role: 'user',
        content: list(count, () => ({ type: 'image_url', image_url: { url: 'https://example.com/a.png' } })),
      },
    ]),
  'calls of one message': (count) =>
    chat([
      user,
      { role: 'assistant', content: null, tool_calls: list(count, (i) => call(`c${i}`, `f${i}`)) },
      ...list(count, (i) => ({ role: 'tool', tool_call_id: `c${i}`, content: 'a' })),
    ]),
  'calls with results in reverse': (count) =>
    chat([
      user,
      { role: 'assistant', content: null, tool_calls: list(count, (i) => call(`c${i}`)) },
      ...list(count, (i) => ({ role: 'tool', tool_call_id: `c${count - 1 - i}`, content: 'a' })),
    ]),
  'calls with one id': (count) =>
    chat([
      user,
      ...list(count, () => [
        { role: 'assistant', content: null, tool_calls: [call('c')] },
        { role: 'tool', tool_call_id: 'c', content: 'a' },
      ]).flat(),
    ]),
  'calls in many messages': (count) =>
    chat([
      user,
      ...list(count, (i) => [
        { role: 'assistant', content: 'a', tool_calls: [call(`functions.f:${i}`)] },
        { role: 'tool', tool_call_id: `functions.f:${i}`, content: 'a' },
      ]).flat(),
    ]),
  'function calls of one function': (count) =>
    chat([
      user,
      ...list(count, () => olderCall),
      ...list(count, () => ({ role: 'function', name: 'f', content: 'a' })),
    ]),
  'function calls without a result': (count) => chat([user, ...list(count, () => olderCall)]),
  'arguments with many keys': (count) =>
    chatWithArguments(
      JSON.stringify(Object.fromEntries(list(count, (i) => [`${(i * 7919) % 1_000_003}`, 0]))),
    ),
  'arguments with many objects': (count) => chatWithArguments(`[1e5,${'{},'.repeat(count)}0]`),
  'arguments with exponents': (count) => chatWithArguments(`{"a":[${'1e5 ,'.repeat(count)}0]}`),
  'arguments with a long number': (count) => chatWithArguments(`[1e5,${'1'.repeat(count)}]`),
  'arguments with quotes': (count) => chatWithArguments(`{"1e5${'\\"'.repeat(count)}`),
  tools: (count) =>
    chat([user], { tools: list(count, (i) => ({ type: 'function', function: { name: `f${i}` } })) }),
  'tools of which some are allowed': (count) => {
    const tools = list(count, (i) => ({ type: 'function', function: { name: `f${i}` } }));
    return chat([user], {
      tools,
      tool_choice: { type: 'allowed_tools', allowed_tools: { mode: 'auto', tools: tools.toReversed() } },
    });
  },
  'a long text': (count) => chat([{ role: 'user', content: 'a'.repeat(count) }]),
  'white space': (count) => chat([{ role: 'user', content: `${' '.repeat(count)}a` }]),
};
