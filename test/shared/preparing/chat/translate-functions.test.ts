import test from 'ava';
import { translateFunctions } from '../../../../shared/preparing/chat/translate-functions.ts';
import type { ChatRequest } from '../../../../shared/contract/chat.ts';

/** The older form of tools: `functions` and `function_call`. */

const hello = { role: 'user', content: 'Hello' } as const;
const weather = { name: 'weather', description: 'Of a city', parameters: { type: 'object' } };
const chat = (fields: object): ChatRequest => ({ model: 'm', messages: [hello], ...fields });

test('functions become tools, and the choice is the same', (t) => {
  const tools = [{ type: 'function', function: weather }];
  for (const [choice, expected] of [
    ['auto', 'auto'],
    ['none', 'none'],
    [{ name: 'weather' }, { type: 'function', function: { name: 'weather' } }],
  ] as const) {
    t.deepEqual(translateFunctions(chat({ functions: [weather], function_call: choice })), {
      body: chat({ tools, tool_choice: expected }),
      wantsFunctionCall: true,
    });
  }
  t.deepEqual(translateFunctions(chat({ functions: [weather] })).body, chat({ tools }));
});

test('a chat without functions stays as it is', (t) => {
  const plain = { body: chat({}), wantsFunctionCall: false };
  t.deepEqual(translateFunctions(chat({})), plain);
  t.deepEqual(translateFunctions(chat({ functions: [], function_call: 'auto' })), plain);
  t.deepEqual(translateFunctions(chat({ functions: null, function_call: null })), plain);
});

test('calls and results in the history become tool calls with matching ids', (t) => {
  const call = { name: 'weather', arguments: '{"city":"Oslo"}' };
  const messages = [
    hello,
    { role: 'assistant', content: null, function_call: call },
    { role: 'function', name: 'weather', content: '21' },
    { role: 'assistant', content: null, function_call: call },
    { role: 'function', name: 'weather', content: '22' },
  ];
  const { body } = translateFunctions(chat({ functions: [weather], messages }));
  t.deepEqual(body.messages as unknown[], [
    hello,
    { role: 'assistant', content: null, tool_calls: [{ id: 'call_1', type: 'function', function: call }] },
    { role: 'tool', tool_call_id: 'call_1', content: '21' },
    { role: 'assistant', content: null, tool_calls: [{ id: 'call_3', type: 'function', function: call }] },
    { role: 'tool', tool_call_id: 'call_3', content: '22' },
  ]);
});

test('a mixture of both forms, and a result without a call, are rejected with their location', (t) => {
  const tools = [{ type: 'function', function: weather }];
  t.like(
    t.throws(() => translateFunctions(chat({ functions: [weather], tools }))),
    { issues: [{ loc: ['body', 'functions'] }] },
  );
  const messages = [hello, { role: 'function', name: 'weather', content: '21' }];
  t.like(
    t.throws(() => translateFunctions(chat({ messages }))),
    { issues: [{ loc: ['body', 'messages', 1, 'name'] }] },
  );
});
