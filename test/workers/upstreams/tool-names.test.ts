import test from 'ava';
import { fitToolNames, letterFirstNames, strictNames } from '../../../workers/upstreams/tool-names.ts';
import type { ChatBody, ChatEvent } from '../../../workers/upstreams/upstream.ts';

const tool = (name: string): object => ({ type: 'function', function: { name, parameters: { name: 'x' } } });
const namesOf = (tools: unknown): string[] =>
  (tools as { function: { name: string } }[]).map((one) => one.function.name);

const names = ['21st_x', 'ns/read file', 'ns_read_file', 'server.tool', 'ok', 'длинное имя', 'x'.repeat(80)];
const body = {
  tools: names.map(tool),
  tool_choice: { type: 'allowed_tools', allowed_tools: { mode: 'auto', tools: [tool('server.tool')] } },
  messages: [
    { role: 'user', content: 'hi' },
    { role: 'assistant', content: null, tool_calls: [{ id: 'c', ...tool('ns/read file') }] },
    { role: 'tool', tool_call_id: 'c', content: 'x' },
  ],
} as unknown as ChatBody;

for (const [what, rule] of [
  ['letters, digits and dashes', strictNames],
  ['a letter first', letterFirstNames],
] as const) {
  test(`names become valid and stay different, and the caller sees his own: ${what}`, (t) => {
    const { body: sent, restore } = fitToolNames(body, rule);
    const fitted = namesOf(sent['tools']);
    t.is(new Set(fitted).size, names.length);
    for (const name of fitted) t.regex(name, rule.pattern);
    t.is(fitted[2], 'ns_read_file');
    t.is(fitted[4], 'ok');
    t.deepEqual(namesOf(sent.messages[1]!.tool_calls), [fitted[1]!]);
    const { allowed_tools: allowed } = sent['tool_choice'] as { allowed_tools: { tools: unknown } };
    t.deepEqual(namesOf(allowed.tools), [fitted[3]!]);
    // Schemas are the caller's.
    t.deepEqual((sent['tools'] as { function: object }[])[0]!.function, {
      name: fitted[0],
      parameters: { name: 'x' },
    });
    const events = fitted.map((name, index): ChatEvent => ({
      type: 'delta',
      index: 0,
      delta: { tool_calls: [{ index, id: 'i', function: { name, arguments: '{}' } }] },
    }));
    const restored = restore(events).map((event) =>
      event.type === 'delta' ? namesOf(event.delta['tool_calls'])[0] : null,
    );
    t.deepEqual(restored, names);
  });
}

test('a chat with valid names is not copied', (t) => {
  const valid = { messages: [], tools: [tool('ok')] } as unknown as ChatBody;
  t.is(fitToolNames(valid, strictNames).body, valid);
});
