import test from 'ava';
import { translatePieces } from '../../../support/chat-events.ts';
import { fromChatResponse } from '../../../../workers/upstreams/openai/from-response.ts';
import { createChatStreamTranslator } from '../../../../workers/upstreams/openai/from-stream.ts';
import { UpstreamError, type ChatEvent } from '../../../../workers/upstreams/upstream.ts';
import { ChatResponseBuilder } from '../../../../workers/runs/chat-response-builder.ts';

/**
 * What servers with OpenAI's API really send. Each case is read whole and in a stream, and a caller gets the same from
 * both.
 */

interface Options {
  readonly isFunctionForced?: boolean;
  readonly onUnknownFinish?: (word: string) => void;
}

interface Message {
  readonly content: string | null;
  readonly reasoning_content?: string;
  readonly tool_calls?: readonly {
    readonly function: { readonly name: string; readonly arguments: string };
  }[];
}

interface Answer {
  readonly message: Message;
  readonly finishReason: string | null;
  readonly native: string | null;
}

function build(events: readonly (ChatEvent | UpstreamError)[]): Answer {
  const builder = new ChatResponseBuilder();
  for (const event of events) {
    if (event instanceof UpstreamError) throw event;
    if (event.type === 'delta' || event.type === 'finish') builder.add(event);
  }
  const [choice] = builder.finish('x', 1, 'm', null as never).choices;
  return {
    message: choice!.message as unknown as Message,
    finishReason: choice!.finish_reason,
    native: choice!.native_finish_reason ?? null,
  };
}

const readWhole = (choice: object, options: Options = {}): Answer =>
  build(fromChatResponse(JSON.stringify({ choices: [choice] }), { apiKey: null, ...options }));

function readStream(chunks: readonly object[], options: Options = {}): Answer {
  const lines = chunks.map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`);
  const text = `${lines.join('')}data: [DONE]\n\n`;
  const translator = createChatStreamTranslator({ apiKey: null, ...options });
  return build(translatePieces(translator, [Buffer.from(text)]));
}

const chunk = (delta: object, finish: unknown = null): object => ({
  choices: [{ index: 0, delta, finish_reason: finish }],
});

/** Reads the same message as a complete response, as a single chunk, and with its end in a separate chunk. */
function readAll(message: object, finish: unknown = 'stop', options: Options = {}): Answer[] {
  return [
    readWhole({ index: 0, message, finish_reason: finish }, options),
    readStream([chunk({ role: 'assistant', ...message }, finish)], options),
    readStream([chunk({ role: 'assistant' }), chunk(message), chunk({}, finish)], options),
  ];
}

const call = (name: string, args: unknown, more: object = {}): object => ({
  id: `id-${name}`,
  type: 'function',
  function: { name, arguments: args },
  ...more,
});

const messages: readonly { readonly name: string; readonly sent: object; readonly read: Partial<Message> }[] =
  [
    {
      name: 'content as a list of texts',
      sent: { content: [{ type: 'text', text: 'Hi ' }, { type: 'output_text', text: 'there' }, '!'] },
      read: { content: 'Hi there!' },
    },
    {
      name: 'content as one part',
      sent: { content: { type: 'text', text: 'Hi' } },
      read: { content: 'Hi' },
    },
    {
      name: 'thinking among the parts of the content (Magistral)',
      sent: {
        content: [
          {
            type: 'thinking',
            thinking: [
              { type: 'text', text: 'Hm, ' },
              { type: 'text', text: 'so' },
            ],
          },
          { type: 'text', text: 'Hi' },
        ],
      },
      read: { content: 'Hi', reasoning_content: 'Hm, so' },
    },
    {
      name: 'parts of an unknown type',
      sent: {
        content: [{ type: 'reference', reference_ids: [1] }, { type: 'text', text: 'Hi' }, null, 7, []],
      },
      read: { content: 'Hi' },
    },
    { name: 'a number as content', sent: { content: 7 }, read: { content: '' } },
    {
      name: 'reasoning (vLLM, Ollama, OpenRouter)',
      sent: { content: 'Hi', reasoning: 'Hm' },
      read: { content: 'Hi', reasoning_content: 'Hm' },
    },
    {
      name: 'reasoning in both fields',
      sent: { content: 'Hi', reasoning: 'Hm', reasoning_content: 'Hm' },
      read: { content: 'Hi', reasoning_content: 'Hm' },
    },
    {
      name: 'reasoning beside an empty reasoning_content',
      sent: { content: 'Hi', reasoning: 'Hm', reasoning_content: '' },
      read: { content: 'Hi', reasoning_content: 'Hm' },
    },
    {
      name: 'reasoning_content as a list',
      sent: {
        content: 'Hi',
        reasoning_content: [
          { type: 'thinking', thinking: 'Hm' },
          { type: 'text', text: '!' },
        ],
      },
      read: { content: 'Hi', reasoning_content: 'Hm!' },
    },
    {
      name: 'arguments as an object',
      sent: { content: null, tool_calls: [call('f', { city: 'Paris' })] },
      read: { content: null, tool_calls: [{ function: { name: 'f', arguments: '{"city":"Paris"}' } }] },
    },
    {
      name: 'the older function_call',
      sent: { content: null, function_call: { name: 'f', arguments: '{}' } },
      read: { content: null, tool_calls: [{ function: { name: 'f', arguments: '{}' } }] },
    },
  ];

for (const { name, sent, read } of messages) {
  test(`is read: ${name}`, (t) => {
    for (const { message } of readAll(sent)) {
      const calls = message.tool_calls?.map(({ function: { name: called, arguments: args } }) => ({
        function: { name: called, arguments: args },
      }));
      t.deepEqual({ ...message, ...(calls === undefined ? {} : { tool_calls: calls }) } as unknown, {
        role: 'assistant',
        ...read,
      });
    }
  });
}

test('nothing but known fields of known types reaches the caller', (t) => {
  const sent = {
    content: 'Hi',
    reasoning_details: [{ type: 'reasoning.text', text: 'x' }],
    refusal: 7,
    audio: { id: 'a', data: 7, secret: 1 },
    images: [{ type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA', key: 1 } }, 7],
    annotations: [{ type: 'url_citation', url_citation: { url: 'https://a.example', title: 'A', at: 1 } }, 7],
    tool_calls: 'none',
    provider: 'x',
    __proto__: { polluted: true },
  };
  for (const { message } of readAll(sent)) {
    t.deepEqual(message as unknown, {
      role: 'assistant',
      content: 'Hi',
      audio: { id: 'a' },
      images: [{ type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } }],
      annotations: [{ type: 'url_citation', url_citation: { url: 'https://a.example', title: 'A' } }],
    });
  }
});

const reasons: readonly {
  readonly words: readonly unknown[];
  readonly reason: string;
  readonly isCall?: true;
}[] = [
  { words: ['stop', 'STOP', 'eos', 'end_turn', 'end-of-turn', 'stop_sequence'], reason: 'stop' },
  { words: ['length', 'model_length', 'MAX_TOKENS', 'max-tokens', 'max_output_tokens'], reason: 'length' },
  {
    words: ['content_filter', 'content-filter', 'SAFETY', 'PROHIBITED_CONTENT', 'refusal'],
    reason: 'content_filter',
  },
  {
    words: ['tool_calls', 'tool_use', 'function_call', 'stop', null, 'null', ''],
    reason: 'tool_calls',
    isCall: true,
  },
  { words: [null, 'null', '', 7], reason: 'stop' },
  { words: ['length'], reason: 'length', isCall: true },
];

for (const { words, reason, isCall } of reasons) {
  for (const word of words) {
    const what = `${JSON.stringify(word)}${isCall === true ? ' with tool calls' : ''}`;
    test(`the finish reason ${what} is ${reason}`, (t) => {
      const message = isCall === true ? { content: null, tool_calls: [call('f', '{}')] } : { content: 'Hi' };
      for (const { finishReason, native } of readAll(message, word)) {
        t.is(finishReason, reason);
        t.is(native, typeof word === 'string' && word !== '' && word !== 'null' ? word : null);
      }
    });
  }
}

test('if one named function was required, a call may end with stop', (t) => {
  const message = { content: null, tool_calls: [call('f', '{}')] };
  for (const { finishReason } of readAll(message, 'stop', { isFunctionForced: true }))
    t.is(finishReason, 'stop');
});

test('an answer with an unknown finish reason is kept, and the word is reported', (t) => {
  const words: string[] = [];
  const answers = readAll({ content: 'Hi' }, 'eclipse', { onUnknownFinish: (word) => words.push(word) });
  for (const { message, finishReason, native } of answers) {
    t.is(message.content, 'Hi');
    t.is(finishReason, 'length');
    t.is(native, 'eclipse');
  }
  t.deepEqual(words, ['eclipse', 'eclipse', 'eclipse']);
});

for (const word of ['abort', 'error', 'ERROR', 'insufficient_system_resource', 'MALFORMED_RESPONSE']) {
  test(`an answer that ends with ${word} is a failure of the vendor, whole and in a stream`, (t) => {
    const whole = t.throws(() => readWhole({ message: { content: 'Hi' }, finish_reason: word }), {
      instanceOf: UpstreamError,
    });
    t.is(whole?.failure, 'unavailable');
    t.is(whole?.vendorCode, word);
    const text = `data: ${JSON.stringify(chunk({ content: 'Hi' }))}\n\ndata: ${JSON.stringify(chunk({}, word))}\n\n`;
    const events = translatePieces(createChatStreamTranslator({ apiKey: null }), [Buffer.from(text)]);
    t.deepEqual(events[0], { type: 'delta', index: 0, delta: { content: 'Hi' } });
    t.is((events[1] as UpstreamError).failure, 'unavailable');
  });
}

test('output that follows a finish reason is part of the answer, which has one end', (t) => {
  const { message, finishReason } = readStream([
    chunk({ tool_calls: [{ index: 0, ...call('f', '{}') }] }, 'tool_calls'),
    chunk({ tool_calls: [{ index: 1, ...call('g', '{}') }] }, 'tool_calls'),
    chunk({ content: 'and a text' }),
    chunk({}, 'tool_calls'),
  ]);
  t.deepEqual(
    message.tool_calls?.map(({ function: { name } }) => name),
    ['f', 'g'],
  );
  t.is(message.content, 'and a text');
  t.is(finishReason, 'tool_calls');
  const { message: text } = readStream([
    chunk({ content: 'a' }, 'null'),
    chunk({ content: 'b' }, 'stop'),
    chunk({ content: 'c' }),
    chunk({ content: 'd' }),
    chunk({ content: 'e' }, 'stop'),
  ]);
  t.is(text.content, 'abcde');
});

const errors: readonly { readonly body: object; readonly failure: UpstreamError['failure'] }[] = [
  { body: { code: 500, message: 'overloaded' }, failure: 'unavailable' },
  { body: { code: 400, message: 'bad temperature' }, failure: 'rejected' },
  { body: { detail: 'Internal error' }, failure: 'unavailable' },
  { body: { detail: [{ loc: ['body'], msg: 'bad', type: 'x' }] }, failure: 'unavailable' },
  { body: { error: 'overloaded' }, failure: 'unavailable' },
  { body: { error: { code: 400, message: 'bad' } }, failure: 'rejected' },
  { body: { object: 'error', code: 429, message: 'slow down' }, failure: 'rate_limited' },
  {
    body: { choices: [{ index: 0, delta: {}, message: {}, error: { code: 502, message: 'x' } }] },
    failure: 'unavailable',
  },
  {
    body: {
      choices: [
        { index: 0, delta: {}, message: {}, finish_reason: 'error', error: { code: 400, message: 'x' } },
      ],
    },
    failure: 'rejected',
  },
];

for (const { body, failure } of errors) {
  test(`an error in a 200 is no answer: ${JSON.stringify(body)}`, (t) => {
    const text = JSON.stringify(body);
    const whole = t.throws(() => fromChatResponse(text, { apiKey: null }), { instanceOf: UpstreamError });
    t.is(whole?.failure, failure);
    const streams = [`data: ${text}\n\n`];
    if (!('choices' in body)) streams.push(`event: error\ndata: ${text}\n\n`);
    for (const lines of streams) {
      const events = translatePieces(createChatStreamTranslator({ apiKey: null }), [Buffer.from(lines)]);
      t.is((events[0] as UpstreamError).failure, failure);
    }
  });
}

test('an error event whose data is no JSON is an error with that text', (t) => {
  const text = 'event: error\ndata: out of memory\n\n';
  const [error] = translatePieces(createChatStreamTranslator({ apiKey: null }), [Buffer.from(text)]);
  t.regex((error as UpstreamError).message, /out of memory/);
});

const answer = (index: unknown, text = 'Hi'): object => ({
  index,
  message: { content: text },
  delta: { content: text },
  finish_reason: 'stop',
});

/** Reads an answer as a whole and as one chunk of a stream. */
function readBody(body: object, options: object = {}): readonly ChatEvent[][] {
  const text = JSON.stringify(body);
  const stream = createChatStreamTranslator({ apiKey: null, ...options });
  return [
    fromChatResponse(text, { apiKey: null, ...options }),
    translatePieces(stream, [Buffer.from(`data: ${text}\n\ndata: [DONE]\n\n`)]) as ChatEvent[],
  ];
}

test('an empty error beside an answer is none', (t) => {
  for (const error of [null, false, '', {}, 0])
    for (const events of readBody({ error, choices: [answer(0)] }))
      t.like(events[0], { delta: { content: 'Hi' } });
});

test('choices that nobody requested are left out', (t) => {
  const list = Array.from({ length: 200_000 }, (_, i) => answer(i));
  const find = (events: readonly ChatEvent[]): unknown[] =>
    events.flatMap((event) => (event.type === 'delta' ? [event.index] : []));
  for (const events of readBody({ choices: list })) {
    t.deepEqual(find(events), [0]);
    t.is(events.filter(({ type }) => type === 'finish').length, 1);
  }
  for (const events of readBody({ choices: list }, { choices: 3 })) t.deepEqual(find(events), [0, 1, 2]);
  for (const index of [1, 99_999_999]) {
    for (const events of readBody({ choices: [answer(index)] }))
      t.deepEqual(find(events), [0], 'the only one');
    for (const events of readBody({ choices: [answer(0), answer(index)] }, { choices: 1 }))
      t.deepEqual(find(events), [0]);
  }
});

test('an answer with more tool calls than a model makes is the vendor’s failure', (t) => {
  const calls = Array.from({ length: 200_000 }, (_, index) => ({
    ...call('f', '{}'),
    index,
    id: `c${index}`,
  }));
  t.throws(
    () =>
      fromChatResponse(JSON.stringify({ choices: [{ message: { tool_calls: calls } }] }), { apiKey: null }),
    {
      instanceOf: UpstreamError,
      message: /more than 1024 tool calls/,
    },
  );
});

test('log probabilities and signatures have known fields of known types only', (t) => {
  const token = { token: 'a', logprob: -1, bytes: [97], secret: 1 };
  const choice = {
    ...answer(0),
    logprobs: {
      content: [{ ...token, top_logprobs: [token, { token: 7, logprob: -1 }, null] }, { token: 1 }, 'x'],
      refusal: { token: 'a' },
    },
  };
  const known = { token: 'a', logprob: -1, bytes: [97] };
  for (const events of readBody({ choices: [choice] }))
    t.like(events[0], { logprobs: { content: [{ ...known, top_logprobs: [known] }], refusal: null } });
  const signed = {
    ...call('f', '{}'),
    extra_content: { google: { thought_signature: 's', other: 1 }, more: 2 },
  };
  for (const events of readBody({
    choices: [{ message: { tool_calls: [signed] }, delta: { tool_calls: [signed] } }],
  })) {
    const [event] = events as [Extract<ChatEvent, { type: 'delta' }>];
    const [piece] = event.delta['tool_calls'] as { extra_content: object }[];
    t.deepEqual(piece!.extra_content, { google: { thought_signature: 's' } });
  }
});

test('a piece with another ID and no name continues the call with its index', (t) => {
  const translator = createChatStreamTranslator({ apiKey: null });
  const chunk = (piece: object): string =>
    `data: ${JSON.stringify({ choices: [{ index: 0, delta: { tool_calls: [piece] } }] })}\n\n`;
  const events = translatePieces(translator, [
    Buffer.from(
      chunk({ index: 0, id: 'a', function: { name: 'f', arguments: '{"x"' } }) +
        chunk({ index: 0, id: 'b', function: { arguments: ':1}' } }),
    ),
  ]) as ChatEvent[];
  const pieces = events.flatMap((event) =>
    event.type === 'delta' ? (event.delta['tool_calls'] as object[]) : [],
  );
  t.deepEqual(pieces, [
    { index: 0, id: 'a', type: 'function', function: { name: 'f', arguments: '{"x"' } },
    { index: 0, function: { arguments: ':1}' } },
  ]);
});
