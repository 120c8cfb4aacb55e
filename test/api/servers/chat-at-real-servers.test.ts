import test, { type ExecutionContext } from 'ava';
import { makePng } from '../../../scripts/vendor-simulator/tiny-png.ts';
import { chatPath, type ChatAnswer } from '../../support/chats.ts';
import { findRow, readAmountCharged, toNano, waitForNoReservation } from '../../support/observe.ts';
import { ServerStack, serverUpstreams, type ServerUpstream } from '../../support/server-stack.ts';
import { readSse } from '../../support/sse-events.ts';

/** Ordinary chats with every server with OpenAI's API: each gets what it accepts, and callers get OpenAI's format. */

const context = 8_192;
const price = 'pricing: { prompt: 13.37, completion: 42.42 }';
const chatUpstreams = serverUpstreams.filter(({ like }) => like !== 'tei');

const servers = new ServerStack(test, ({ name, like, family }) =>
  like === 'tei'
    ? []
    : [
        `  - { id: ${name}, type: chat, context: ${context}, ${price}, routes: [{ upstream: ${name}, model: "${family}" }] }`,
        `  - { id: ${name}-thinks, type: chat, context: ${context}, reasoning: true, ${price}, routes: [{ upstream: ${name}, model: "${family}-reasoner" }] }`,
        `  - { id: ${name}-long, type: chat, context: 131072, ${price}, routes: [{ upstream: ${name}, model: "${family}" }] }`,
        `  - { id: ${name}-breaks, type: chat, context: ${context}, ${price}, routes: [{ upstream: ${name}, model: "${family}+streamerror-4" }] }`,
      ],
);

const russian = 'Съешь же ещё этих мягких французских булок, да выпей чаю. ';
const tool = {
  type: 'function',
  function: {
    name: 'look_up',
    description: 'Looks something up.',
    parameters: { type: 'object', properties: { what: { type: 'string' } }, required: ['what'] },
  },
};
const call = (id: string, args: string): object => ({
  id,
  type: 'function',
  function: { name: 'look_up', arguments: args },
});
const image = `data:image/png;base64,${makePng(8, 8, [200, 10, 10]).toString('base64')}`;

interface Expected {
  readonly status?: number;
  /** How many calls reach the server. */
  readonly calls?: number;
  readonly choices?: number;
  readonly finish?: string;
}

interface Case {
  readonly title: string;
  /** The end of the model's id. */
  readonly model?: string;
  /** @param text a text that only this chat has, for its last user message */
  readonly body: (text: string) => object;
  readonly expected?: (upstream: ServerUpstream) => Expected;
  readonly check?: (t: ExecutionContext, answer: ChatAnswer, text: string) => void;
}

const user = (text: string): object => ({ role: 'user', content: text });
const expectAnswer = (): Expected => ({});
const refusedOnce: Expected = { status: 400, calls: 1 };

const says = (t: ExecutionContext, answer: ChatAnswer, text: string): void => {
  t.is(answer.choices[0]?.message.content, `You said: ${text}`);
};

const cases: readonly Case[] = [
  { title: 'a plain chat', body: (text) => ({ messages: [user(text)] }), check: says },
  {
    title: 'system and developer messages',
    body: (text) => ({
      messages: [
        { role: 'system', content: 'Be brief.' },
        { role: 'developer', content: 'Be kind.' },
        user(text),
      ],
    }),
    check: says,
  },
  {
    title: 'a name, a null and earlier reasoning in messages',
    body: (text) => ({
      messages: [
        { role: 'user', name: 'ann', content: 'Hello' },
        {
          role: 'assistant',
          content: 'Hello.',
          reasoning_content: 'A greeting.',
          tool_calls: [],
          refusal: null,
        },
        user(text),
      ],
    }),
    check: says,
  },
  {
    title: 'empty lists, and a choice among no tools',
    body: (text) => ({ messages: [user(text)], tools: [], stop: [], tool_choice: 'auto' }),
    check: says,
  },
  {
    title: 'a limit of completion tokens',
    body: (text) => ({ messages: [user(`${text} ${'word '.repeat(40)}`)], max_completion_tokens: 20 }),
    expected: () => ({ finish: 'length' }),
    check: (t, answer) => t.is(answer.usage.completion_tokens, 20),
  },
  {
    title: "OpenAI's own hints",
    body: (text) => ({
      messages: [user(text)],
      store: true,
      metadata: { topic: 'tea' },
      user: 'u-1',
      prompt_cache_key: 'key',
      safety_identifier: 'id',
      verbosity: 'low',
      seed: 7,
      logit_bias: { '50256': -100 },
      parallel_tool_calls: true,
      stream_options: null,
    }),
    check: says,
  },
  {
    title: 'a long Russian chat without a limit',
    body: (text) => ({
      messages: [user(russian.repeat(60)), { role: 'assistant', content: 'Да.' }, user(text)],
    }),
    check: says,
  },
  {
    title: 'a Russian chat with a limit as long as the context',
    body: (text) => ({
      messages: [user(russian.repeat(10)), { role: 'assistant', content: 'Да.' }, user(text)],
      max_tokens: context,
    }),
    check: says,
  },
  {
    title: 'a tool that is called',
    body: (text) => ({ messages: [user(text)], tools: [tool], tool_choice: 'auto' }),
    expected: () => ({ finish: 'tool_calls' }),
    check: (t, answer) => {
      const calls = answer.choices[0]?.message.tool_calls ?? [];
      t.is(calls.length, 1);
      t.is(calls[0]?.type, 'function');
      t.true((calls[0]?.id.length ?? 0) > 0);
      t.like(calls[0]?.function, { name: 'look_up', arguments: '{"what":"simulated"}' });
    },
  },
  {
    title: 'the result of a tool, and of a call without arguments',
    body: (text) => ({
      messages: [
        user(text),
        {
          role: 'assistant',
          content: null,
          tool_calls: [call('call_first_of_two', '{"what":"tea"}'), call('call_2', '')],
        },
        { role: 'tool', tool_call_id: 'call_first_of_two', content: 'hot' },
        { role: 'tool', tool_call_id: 'call_2', content: 'nothing' },
      ],
      tools: [tool],
    }),
    check: says,
  },
  {
    title: 'an answer by a JSON schema',
    body: (text) => ({
      messages: [user(text)],
      response_format: {
        type: 'json_schema',
        json_schema: {
          name: 'answer',
          strict: true,
          schema: { type: 'object', properties: { tea: { type: 'string' } }, required: ['tea'] },
        },
      },
    }),
    // DeepSeek has JSON, but no schemas.
    expected: ({ like }) => (like === 'deepseek' ? refusedOnce : {}),
    check: (t, answer) =>
      t.deepEqual(JSON.parse(answer.choices[0]?.message.content ?? ''), { tea: 'simulated' }),
  },
  {
    title: 'two choices',
    body: (text) => ({ messages: [user(text)], n: 2 }),
    expected: ({ like }) => ({ choices: like === 'deepseek' || like === 'ollama' ? 1 : 2 }),
    check: says,
  },
  {
    title: 'a model that reasons',
    model: '-thinks',
    body: (text) => ({ messages: [user(text)] }),
    check: (t, answer, text) => {
      says(t, answer, text);
      t.is(answer.choices[0]?.message.reasoning_content, 'The user asked, so an answer is due.');
    },
  },
  {
    title: 'an image that the model cannot see',
    body: (text) => ({
      messages: [
        {
          role: 'user',
          content: [
            { type: 'text', text },
            { type: 'image_url', image_url: { url: image } },
          ],
        },
      ],
    }),
    // Mistral's models see.
    expected: ({ like }) => (like === 'mistral' ? {} : refusedOnce),
  },
];

let texts = 0;
const uniqueText = (): string => `chat number ${++texts} here`;

for (const upstream of chatUpstreams) {
  for (const { title, model = '', body, expected = expectAnswer, check } of cases) {
    test(`${upstream.name}: ${title}`, async (t) => {
      const text = uniqueText();
      const account = await servers.stack.createAccount();
      const { status = 200, calls, choices = 1, finish = 'stop' } = expected(upstream);
      const response = await servers.stack.post(chatPath, account.apiKey, {
        model: upstream.name + model,
        ...body(text),
      });
      const answer = (await response.json()) as ChatAnswer;
      const sent = servers.sentTo(upstream, text);
      const described = JSON.stringify([answer, sent.map((request) => [request.status, request.body])]);
      t.is(response.status, status, described);
      if (calls !== undefined) t.is(sent.length, calls, described);
      const requestId = response.headers.get('x-request-id')!;
      if (status !== 200) {
        t.true(answer.error.message.length > 0, described);
        t.is(await readAmountCharged(servers.stack, account.id, '100'), 0n);
        return;
      }
      // A server may refuse a limit that does not fit, and nothing else.
      const refused = sent.filter((request) => request.status !== 200);
      t.true(refused.length === 0 || title.includes('Russian'), described);
      t.is(answer.choices.length, choices, described);
      t.true(
        answer.choices.every((choice) => choice.finish_reason === finish),
        described,
      );
      check?.(t, answer, text);
      await isChargedExactly(t, account.id, requestId, answer.usage);
    });
  }

  for (const includesUsage of [true, false]) {
    const title = includesUsage ? 'with usage' : 'without usage';
    test(`${upstream.name}: a streamed chat ${title}`, async (t) => {
      const text = uniqueText();
      const account = await servers.stack.createAccount();
      const response = await servers.stack.post(chatPath, account.apiKey, {
        model: `${upstream.name}-thinks`,
        messages: [user(text)],
        stream: true,
        ...(includesUsage && { stream_options: { include_usage: true } }),
      });
      t.is(response.status, 200);
      const { events, isDone } = await readSse(response);
      t.true(isDone);
      t.is(servers.sentTo(upstream, text).length, 1);
      const deltas = events.flatMap(({ choices = [] }) => choices);
      t.is(deltas.map(({ delta }) => delta.content ?? '').join(''), `You said: ${text}`);
      t.is(
        deltas.map(({ delta }) => (delta as { reasoning_content?: string }).reasoning_content ?? '').join(''),
        'The user asked, so an answer is due.',
      );
      t.deepEqual(
        deltas.flatMap((delta) => delta.finish_reason ?? []),
        ['stop'],
      );
      t.is(
        deltas.findIndex((delta) => delta.finish_reason !== null),
        deltas.length - 1,
      );
      const usages = events.filter(({ usage }) => (usage ?? null) !== null);
      t.is(usages.length, includesUsage ? 1 : 0);
      t.true(events.every(({ error }) => error === undefined));
      const row = await findRow(servers.stack, response.headers.get('x-request-id')!);
      t.true(row.costNano > 0n);
      t.false(row.counted, "the server's own usage is charged");
    });
  }

  test(`${upstream.name}: a streamed tool call, whole or in pieces`, async (t) => {
    const text = uniqueText();
    const account = await servers.stack.createAccount();
    const response = await servers.stack.post(chatPath, account.apiKey, {
      model: upstream.name,
      messages: [user(text)],
      tools: [tool],
      stream: true,
    });
    const { events, isDone } = await readSse(response);
    t.true(isDone);
    const choices = events.flatMap(({ choices = [] }) => choices);
    const pieces = choices.flatMap(({ delta }) => delta.tool_calls ?? []);
    t.is(pieces.filter(({ id }) => id !== undefined).length, 1);
    t.is(pieces.map((piece) => piece.function?.name ?? '').join(''), 'look_up');
    t.is(pieces.map((piece) => piece.function?.arguments ?? '').join(''), '{"what":"simulated"}');
    t.deepEqual(
      choices.flatMap((choice) => choice.finish_reason ?? []),
      ['tool_calls'],
    );
  });

  test(`${upstream.name}: a stream that the server breaks off ends with one error`, async (t) => {
    const account = await servers.stack.createAccount();
    const response = await servers.stack.post(chatPath, account.apiKey, {
      model: `${upstream.name}-breaks`,
      messages: [user(uniqueText())],
      stream: true,
    });
    const { events } = await readSse(response);
    t.is(events.filter(({ error }) => error !== undefined).length, 1, JSON.stringify(events));
    t.deepEqual(
      events.flatMap(({ choices = [] }) => choices.flatMap((choice) => choice.finish_reason ?? [])),
      [],
    );
    await waitForNoReservation(servers.stack, account.id);
  });
}

test('deepseek: a chat without a limit is answered though it may be longer than the longest answer', async (t) => {
  const text = uniqueText();
  const account = await servers.stack.createAccount();
  const response = await servers.stack.post(chatPath, account.apiKey, {
    model: 'deepseek-long',
    messages: [user(text)],
  });
  const answer = (await response.json()) as ChatAnswer;
  t.is(response.status, 200, JSON.stringify(answer));
  says(t, answer, text);
  const sent = servers.sentTo({ like: 'deepseek' }, text);
  t.deepEqual(
    sent.map(({ status }) => status),
    [400, 200],
  );
  t.is(sent[1]?.body?.['max_tokens'], 8_192);
});

test('openrouter: an error within a whole answer is not an answer', async (t) => {
  const account = await servers.stack.createAccount();
  const response = await servers.stack.post(chatPath, account.apiKey, {
    model: 'openrouter-breaks',
    messages: [user(uniqueText())],
  });
  t.is(response.status, 502);
  t.is(await readAmountCharged(servers.stack, account.id, '100'), 0n);
});

async function isChargedExactly(
  t: ExecutionContext,
  accountId: string,
  requestId: string,
  { prompt_tokens: prompt, completion_tokens: completion, cost_request: cost }: ChatAnswer['usage'],
): Promise<void> {
  const nano = BigInt(prompt) * 13_370n + BigInt(completion) * 42_420n;
  t.true(nano > 0n);
  t.is(toNano(cost), nano);
  const row = await findRow(servers.stack, requestId);
  t.is(row.costNano, nano);
  t.is(await readAmountCharged(servers.stack, accountId, '100'), nano);
}
