import test from 'ava';
import { countTokens } from '../../../../shared/catalog/count-tokens.ts';
import { flattenEvents } from '../../../support/chat-events.ts';
import { createContext } from '../../../support/upstream-target.ts';
import { runDemoEcho } from '../../../../workers/upstreams/builtin/demo-echo.ts';
import type {
  ChatBody,
  ChatEvent,
  ChatMessage,
  UpstreamUsage,
} from '../../../../workers/upstreams/upstream.ts';

interface EchoedChat {
  texts: string[];
  deltas: ChatEvent[];
  finishes: string[];
  usage: UpstreamUsage | null;
  kinds: string[];
}

async function echo(body: Record<string, unknown> | ChatMessage[], stream = true): Promise<EchoedChat> {
  const chat = (Array.isArray(body) ? { messages: body } : body) as ChatBody;
  const answer: EchoedChat = { texts: [], deltas: [], finishes: [], usage: null, kinds: [] };
  const batches = runDemoEcho(chat, stream, createContext(), { wordPauseMs: 0 });
  for await (const event of flattenEvents(batches)) {
    answer.kinds.push(event.type);
    if (event.type === 'usage') answer.usage = event.usage;
    else if (event.type === 'finish') answer.finishes[event.index] = event.finishReason;
    else if (event.type === 'delta') {
      answer.deltas.push(event);
      answer.texts[event.index] = (answer.texts[event.index] ?? '') + String(event.delta['content']);
    }
  }
  return answer;
}

const HELLO = [
  { role: 'system', content: 'Be brief.' },
  { role: 'user', content: 'an earlier question' },
  { role: 'assistant', content: 'an earlier answer' },
  { role: 'user', content: 'Hello there, dear echo.' },
] satisfies ChatMessage[];

test('the answer states that it is not an AI and repeats the last user message', async (t) => {
  const { texts } = await echo(HELLO);
  t.regex(texts[0] ?? '', /not an AI/);
  t.true(texts[0]?.endsWith('You said: Hello there, dear echo.'));
  t.false(texts[0]?.includes('earlier'));
});

test('a streamed answer is one delta per word, the first with the role, then finish, then usage', async (t) => {
  const { deltas, texts, kinds } = await echo(HELLO);
  t.is(deltas.length, (texts[0] ?? '').split(' ').length);
  t.deepEqual(
    deltas.map((event) => event.type === 'delta' && event.delta['role']),
    ['assistant', ...deltas.slice(1).map(() => undefined)],
  );
  t.deepEqual(kinds.slice(-2), ['finish', 'usage']);
});

test('a non-streamed answer is one delta with the same text', async (t) => {
  const whole = await echo(HELLO, false);
  t.is(whole.deltas.length, 1);
  t.deepEqual(whole.texts, (await echo(HELLO)).texts);
});

test('the prompt is billed as the tokens of all messages, plus 3 per message, plus 3; the completion as the tokens of the whole answer', async (t) => {
  const { texts, usage } = await echo(HELLO);
  const expected = HELLO.reduce((sum, { content }) => sum + 3 + countTokens(content), 3);
  t.is(usage?.promptTokens, expected);
  t.is(usage?.completionTokens, countTokens(texts[0] ?? ''));
});

test('the answer states the number of images and files in the message', async (t) => {
  const image = { type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } };
  const { texts } = await echo([
    { role: 'user', content: [{ type: 'text', text: 'look' }, image, image, { type: 'file', file: {} }] },
  ]);
  t.regex(texts[0] ?? '', /You said: look I also got 2 images\. I also got 1 file\.$/);
  const single = await echo([{ role: 'user', content: [image] }]);
  t.regex(single.texts[0] ?? '', /You said nothing\. I also got 1 image\.$/);
});

test('max_tokens limits the answer, which then finishes with length', async (t) => {
  const whole = (await echo(HELLO)).texts[0] ?? '';
  for (const limit of [1, 2, 5, 11]) {
    for (const name of ['max_tokens', 'max_completion_tokens']) {
      const { texts, finishes, usage } = await echo({ messages: HELLO, [name]: limit });
      t.true(whole.startsWith(texts[0] ?? '?'));
      t.is(usage?.completionTokens, limit);
      t.deepEqual(finishes, ['length']);
    }
  }
  const sufficient = await echo({ messages: HELLO, max_tokens: countTokens(whole) });
  t.deepEqual(sufficient.texts, [whole]);
  t.deepEqual(sufficient.finishes, ['stop']);
});

test('max_tokens never cuts a character in two', async (t) => {
  for (let limit = 15; limit < 40; limit++) {
    const { texts } = await echo({
      messages: [{ role: 'user', content: '👩‍🚀🎉🚢'.repeat(5) }],
      max_tokens: limit,
    });
    t.notThrows(() => encodeURIComponent(texts[0] ?? ''));
  }
});

test('the answer ends before a stop string', async (t) => {
  for (const stop of ['there', ['never', 'dear', 'there', '']]) {
    const { texts, finishes } = await echo({ messages: HELLO, stop });
    t.true(texts[0]?.endsWith('You said: Hello '));
    t.deepEqual(finishes, ['stop']);
  }
});

test('n choices are generated and billed', async (t) => {
  const one = await echo(HELLO);
  const three = await echo({ messages: HELLO, n: 3 });
  t.deepEqual(
    three.texts,
    [0, 1, 2].map(() => one.texts[0] ?? ''),
  );
  t.deepEqual(three.finishes, ['stop', 'stop', 'stop']);
  t.is(three.usage?.completionTokens, 3 * (one.usage?.completionTokens ?? 0));
  t.is(three.usage?.promptTokens, one.usage?.promptTokens);
});

test('only the start of a very long message is echoed, and the answer says so', async (t) => {
  const { texts, usage } = await echo([{ role: 'user', content: 'word '.repeat(200_000) }], false);
  t.true((texts[0] ?? '').length < 2200);
  t.regex(texts[0] ?? '', /The first 2000 of 999999 characters/);
  t.true((usage?.promptTokens ?? 0) > 199_000);
});

test('there is an answer even without a user message', async (t) => {
  for (const messages of [[], [{ role: 'user', content: null }], [{ role: 'system', content: 'x' }]]) {
    t.regex((await echo(messages)).texts[0] ?? '', /You said nothing\.$/);
  }
});

test('aborting stops the answer during its pauses, with the abort reason', async (t) => {
  const controller = new AbortController();
  const reason = new Error('the caller disconnected');
  const body = { messages: HELLO } as ChatBody;
  const events = runDemoEcho(body, true, createContext({ signal: controller.signal }), {
    wordPauseMs: 60_000,
  });
  t.is((await events.next()).value?.[0]?.type, 'delta');
  const next = events.next();
  controller.abort(reason);
  t.is(await t.throwsAsync(next), reason);
});

const weather = {
  type: 'function',
  function: {
    name: 'weather',
    parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
  },
};
const question = { role: 'user', content: 'Is it warm in Oslo?' } satisfies ChatMessage;

test('with tools, the first or the forced one is called with arguments that match its schema, until its result follows', async (t) => {
  const time = { type: 'function', function: { name: 'time' } };
  for (const stream of [true, false]) {
    const { deltas, finishes } = await echo({ messages: [question], tools: [weather, time] }, stream);
    const pieces = deltas.flatMap((event) =>
      event.type === 'delta'
        ? (event.delta['tool_calls'] as { function: { name?: string; arguments: string } }[])
        : [],
    );
    t.is(pieces[0]?.function.name, 'weather');
    t.deepEqual(JSON.parse(pieces.map((piece) => piece.function.arguments).join('')), {
      city: question.content,
    });
    t.deepEqual(finishes, ['tool_calls']);
  }
  const forced = { type: 'function', function: { name: 'time' } };
  t.like((await echo({ messages: [question], tools: [weather, time], tool_choice: forced })).deltas[0], {
    delta: { tool_calls: [{ function: { name: 'time', arguments: '{}' } }] },
  });
  const none = await echo({ messages: [question], tools: [weather], tool_choice: 'none' });
  t.deepEqual(none.finishes, ['stop']);
  const result = { role: 'tool', content: '21 degrees', tool_call_id: 'call_echo1' } satisfies ChatMessage;
  const answered = await echo({
    messages: [question, { role: 'assistant', content: null }, result],
    tools: [weather],
  });
  t.deepEqual(answered.finishes, ['stop']);
  t.regex(answered.texts[0] ?? '', /The tool said: 21 degrees/);
});

test('with a response format, the answer is JSON that matches it', async (t) => {
  const json_schema = { name: 'place', schema: weather.function.parameters };
  const { texts, finishes } = await echo({
    messages: [question],
    response_format: { type: 'json_schema', json_schema },
  });
  t.deepEqual(JSON.parse(texts[0] ?? ''), { city: question.content });
  t.deepEqual(finishes, ['stop']);
  const object = await echo({ messages: [question], response_format: { type: 'json_object' } });
  t.deepEqual(JSON.parse(object.texts[0] ?? ''), { you_said: question.content });
});
