import test from 'ava';
import OpenAI from 'openai';
import { Chats } from '../support/chats.ts';
import { findRow } from '../support/observe.ts';
import { readSse } from '../support/sse-events.ts';

/** Tools of a chat, and tool calls. */

const chats = new Chats(test);
const parallel = chats.addModel('gpt-sim-parallel');

const tool = (name: string): object => ({
  type: 'function',
  function: {
    name,
    description: `About ${name}`,
    parameters: {
      type: 'object',
      properties: { city: { type: 'string' }, unit: { enum: ['C', 'F'] } },
      required: ['city', 'unit'],
    },
    strict: true,
  },
});

test('tool calls are returned whole, and their results reach the vendor unchanged', async (t) => {
  const account = await chats.stack.createAccount();
  const text = chats.uniqueText();
  const tools = [tool('weather'), tool('time')];
  const { answer } = await chats.ask(account, parallel, { tools, tool_choice: 'auto' }, text);
  t.deepEqual(chats.sentTo(text)[0]?.body?.['tools'], tools);
  const [choice] = answer.choices;
  t.is(choice?.finish_reason, 'tool_calls');
  t.is(choice?.message.content, null);
  const calls = choice!.message.tool_calls!;
  t.deepEqual(
    calls.map((call) => [call.type, call.function.name, JSON.parse(call.function.arguments) as unknown]),
    ['weather', 'time'].map((name) => ['function', name, { city: 'simulated', unit: 'C' }]),
  );
  t.is(new Set(calls.map((call) => call.id)).size, 2);

  const messages = [
    { role: 'user', content: `${text} again` },
    { role: 'assistant', content: null, tool_calls: calls },
    ...calls.map((call) => ({ role: 'tool', tool_call_id: call.id, content: '{"degrees":21}' })),
  ];
  const second = await chats.ask(account, parallel, { tools, messages });
  t.is(second.answer.choices[0]?.finish_reason, 'stop');
  t.deepEqual(chats.sentTo(`${text} again`)[0]?.body?.['messages'], messages);
});

test('streamed tool calls have an index, start with id and name, and add up to the complete arguments', async (t) => {
  const account = await chats.stack.createAccount();
  const more = { tools: [tool('weather'), tool('time')], stream: true };
  const { events, isDone } = await readSse(await chats.send(account, parallel, more));
  t.true(isDone);
  const parts = events.flatMap((event) => event.choices?.[0]?.delta.tool_calls ?? []);
  for (const [index, name] of ['weather', 'time'].entries()) {
    const callParts = parts.filter((part) => part.index === index);
    t.truthy(callParts[0]?.id);
    t.is(callParts[0]?.type, 'function');
    t.is(callParts[0]?.function?.name, name);
    t.true(callParts.slice(1).every((part) => part.id === undefined || part.id === callParts[0]?.id));
    const text = callParts.map((part) => part.function?.arguments ?? '').join('');
    t.deepEqual(JSON.parse(text), { city: 'simulated', unit: 'C' });
  }
  t.is(events.at(-1)?.choices?.[0]?.finish_reason, 'tool_calls');
});

const modelWithoutUsage = chats.addModel('gpt-sim+nousage');

test('if the vendor reports no tokens for a tool call, it is billed by our own count', async (t) => {
  const account = await chats.stack.createAccount();
  const { requestId } = await chats.ask(account, modelWithoutUsage, { tools: [tool('weather')] });
  const row = await findRow(chats.stack, requestId);
  t.true(row.completionTokens > 5, `${row.completionTokens} tokens`);
  t.true(row.promptTokens > 30, `${row.promptTokens} tokens, but the tools are part of the prompt`);
});

test('the older functions and function_call reach the vendor as tools, and come back in their own form', async (t) => {
  const account = await chats.stack.createAccount();
  const client = new OpenAI({ apiKey: account.apiKey, baseURL: `${chats.stack.url}/v1`, maxRetries: 0 });
  const { function: weather } = tool('weather') as { function: OpenAI.FunctionDefinition };
  const functions = [weather, { ...weather, name: 'time' }];
  const text = chats.uniqueText();
  const question = { role: 'user', content: text } as const;
  const request = { model: parallel, functions, function_call: { name: 'time' } };
  const { choices } = await client.chat.completions.create({ ...request, messages: [question] });
  const [choice] = choices;
  t.is(choice?.finish_reason, 'function_call');
  t.is(choice?.message.content, null);
  t.is(choice?.message.tool_calls, undefined);
  const call = choice!.message.function_call!;
  t.is(call.name, 'time');
  t.deepEqual(JSON.parse(call.arguments), { city: 'simulated', unit: 'C' });
  t.like(chats.sentTo(text)[0]?.body, { tools: [{ function: weather }, { function: { name: 'time' } }] });

  const again = `${text} again`;
  const answered = await client.chat.completions.create({
    ...request,
    function_call: 'auto',
    messages: [
      { role: 'user', content: again },
      choice!.message,
      { role: 'function', name: 'time', content: 'noon' },
    ],
  });
  t.is(answered.choices[0]?.finish_reason, 'stop');
  const [, sentCall, sentResult] = chats.sentTo(again)[0]!.body!['messages'] as Record<string, unknown>[];
  t.like(sentCall, { role: 'assistant', tool_calls: [{ type: 'function', function: call }] });
  t.like(sentResult, { role: 'tool', content: 'noon' });

  const stream = await client.chat.completions.create({ ...request, messages: [question], stream: true });
  const pieces: OpenAI.ChatCompletionChunk.Choice[] = [];
  for await (const chunk of stream) pieces.push(...chunk.choices);
  t.is(pieces.map(({ delta }) => delta.function_call?.name ?? '').join(''), 'time');
  t.deepEqual(JSON.parse(pieces.map(({ delta }) => delta.function_call?.arguments ?? '').join('')), {
    city: 'simulated',
    unit: 'C',
  });
  t.is(pieces.at(-1)?.finish_reason, 'function_call');
});
