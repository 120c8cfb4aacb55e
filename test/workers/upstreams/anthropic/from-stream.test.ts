import test from 'ava';

import { createMessageTranslator } from '../../../../workers/upstreams/anthropic/response-translator.ts';
import { createChatStreamTranslator } from '../../../../workers/upstreams/anthropic/from-stream.ts';
import { type ChatEvent, noUpstreamUsage, UpstreamError } from '../../../../workers/upstreams/upstream.ts';
import { translatePieces, type ChatOutcome } from '../../../support/chat-events.ts';

function translate(pieces: readonly Uint8Array[], remembers = true): ChatOutcome {
  const messageTranslator = createMessageTranslator({ model: 'claude-sonnet-4-5', remembers });
  return translatePieces(createChatStreamTranslator(messageTranslator, 'sk-ant-1234567890'), pieces);
}

const translateText = (text: string): ChatOutcome => translate([Buffer.from(text)]);

function toStream(...events: { type: string }[]): string {
  return events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join('');
}

const delta = (fields: object): ChatEvent => ({ type: 'delta', index: 0, delta: { ...fields } });
const START = delta({ role: 'assistant', content: '' });
const count = (
  promptTokens: number | null,
  completionTokens: number | null,
  more: object = {},
): ChatEvent => ({
  type: 'usage',
  usage: { ...noUpstreamUsage, promptTokens, completionTokens, ...more },
});
const partial = (promptTokens: number, completionTokens: number, more: object = {}): ChatEvent =>
  Object.assign(count(promptTokens, completionTokens, more), { isPartial: true });
const finish = (
  finishReason: 'stop' | 'length' | 'tool_calls' | 'content_filter',
  nativeFinishReason: string | null,
): ChatEvent => ({ type: 'finish', index: 0, finishReason, nativeFinishReason });

const begin = (usage: object = { input_tokens: 25, output_tokens: 1 }): { type: string } =>
  Object.assign(
    { type: 'message_start' },
    { message: { id: 'msg_1', role: 'assistant', content: [], usage } },
  );
const open = (index: number, content_block: object): { type: string } =>
  Object.assign({ type: 'content_block_start' }, { index, content_block });
const extend = (index: number, piece: object): { type: string } =>
  Object.assign({ type: 'content_block_delta' }, { index, delta: piece });
const close = (index: number): { type: string } => Object.assign({ type: 'content_block_stop' }, { index });
const end = (stop_reason: string | null, usage?: object): { type: string } =>
  Object.assign({ type: 'message_delta' }, { delta: { stop_reason, stop_sequence: null }, usage });
const STOP = { type: 'message_stop' };
const textBlock = (text: string): { type: string }[] => [
  open(0, { type: 'text', text: '' }),
  extend(0, { type: 'text_delta', text }),
  close(0),
];

/** "Basic streaming request" of Anthropic's page on streaming, with another text. */
const DOCUMENTED = `event: message_start
data: {"type": "message_start", "message": {"id": "msg_1nZdL29xx5MUA1yADyHTEsnR8uuvGzszyY", "type": "message", "role": "assistant", "content": [], "model": "claude-opus-4-6", "stop_reason": null, "stop_sequence": null, "usage": {"input_tokens": 25, "output_tokens": 1}}}

event: content_block_start
data: {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}

event: ping
data: {"type": "ping"}

event: content_block_delta
data: {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Grüße"}}

event: content_block_delta
data: {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": " 👋"}}

event: content_block_stop
data: {"type": "content_block_stop", "index": 0}

event: message_delta
data: {"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence":null}, "usage": {"output_tokens": 15}}

event: message_stop
data: {"type": "message_stop"}

`;

/** "Streaming request with tool use" of the same page, with shorter arguments and thinking, and its trailing spaces. */
const TOOLS = `event: message_start
data: {"type":"message_start","message":{"id":"msg_014p7gG3wDgGV9EUtLvnow3U","type":"message","role":"assistant","model":"claude-sonnet-4-5","stop_sequence":null,"usage":{"input_tokens":472,"cache_creation_input_tokens":100,"cache_read_input_tokens":28,"output_tokens":2},"content":[],"stop_reason":null}   }

event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"Let me solve "}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"this."}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"EqQBCgIYAhIM1gbcDa9GJwZA2b3hGgxBdjrkzLoky3dl1pkiMOYds..."}}

event: content_block_stop
data: {"type":"content_block_stop","index":0}

event: content_block_start
data: {"type":"content_block_start","index":1,"content_block":{"type":"redacted_thinking","data":"EmwKAhgBEgy3va3pzix/LafPsn4"}}

event: content_block_stop
data: {"type":"content_block_stop","index":1}

event: content_block_start
data: {"type":"content_block_start","index":2,"content_block":{"type":"text","text":""}    }

event: content_block_delta
data: {"type":"content_block_delta","index":2,"delta":{"type":"text_delta","text":"Okay"}             }

event: content_block_stop
data: {"type":"content_block_stop","index":2      }

event: content_block_start
data: {"type":"content_block_start","index":3,"content_block":{"type":"tool_use","id":"toolu_01T1x1fJ34qAmk2tNTrN7Up6","name":"get_weather","input":{}}}

event: content_block_delta
data: {"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":""}}

event: content_block_delta
data: {"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":"{\\"location\\":"}}

event: content_block_delta
data: {"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":" \\"São Paulo\\"}"}}

event: content_block_stop
data: {"type":"content_block_stop","index":3}

event: content_block_start
data: {"type":"content_block_start","index":4,"content_block":{"type":"tool_use","id":"toolu_02","name":"get_time","input":{}}}

event: content_block_delta
data: {"type":"content_block_delta","index":4,"delta":{"type":"input_json_delta","partial_json":""}}

event: content_block_stop
data: {"type":"content_block_stop","index":4}

event: message_delta
data: {"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"input_tokens":472,"cache_creation_input_tokens":100,"cache_read_input_tokens":28,"output_tokens":89,"output_tokens_details":{"thinking_tokens":60}}}

event: message_stop
data: {"type":"message_stop"}

`;

const cached = { cachedTokens: 28, cacheWriteTokens: 100 };

const STREAMS: { name: string; text: string; events: ChatEvent[] }[] = [
  {
    name: 'text',
    text: DOCUMENTED,
    events: [
      START,
      partial(25, 1),
      delta({ content: 'Grüße' }),
      delta({ content: ' 👋' }),
      count(25, 15),
      finish('stop', 'end_turn'),
      count(25, 15),
    ],
  },
  {
    name: 'thinking and calls',
    text: TOOLS,
    events: [
      START,
      partial(600, 2, cached),
      delta({ reasoning_content: 'Let me solve ' }),
      delta({ reasoning_content: 'this.' }),
      delta({ content: 'Okay' }),
      delta({
        tool_calls: [
          {
            index: 0,
            id: 'toolu_01T1x1fJ34qAmk2tNTrN7Up6',
            type: 'function',
            function: { name: 'get_weather', arguments: '' },
          },
        ],
      }),
      delta({ tool_calls: [{ index: 0, function: { arguments: '{"location":' } }] }),
      delta({ tool_calls: [{ index: 0, function: { arguments: ' "São Paulo"}' } }] }),
      delta({
        tool_calls: [
          { index: 1, id: 'toolu_02', type: 'function', function: { name: 'get_time', arguments: '' } },
        ],
      }),
      delta({ tool_calls: [{ index: 1, function: { arguments: '{}' } }] }),
      count(600, 89, { ...cached, reasoningTokens: 60 }),
      {
        type: 'remember',
        index: 0,
        toolCallId: 'toolu_01T1x1fJ34qAmk2tNTrN7Up6',
        value: {
          kind: 'anthropic',
          model: 'claude-sonnet-4-5',
          blocks: [
            {
              type: 'thinking',
              thinking: 'Let me solve this.',
              signature: 'EqQBCgIYAhIM1gbcDa9GJwZA2b3hGgxBdjrkzLoky3dl1pkiMOYds...',
            },
            { type: 'redacted_thinking', data: 'EmwKAhgBEgy3va3pzix/LafPsn4' },
          ],
        },
      },
      finish('tool_calls', 'tool_use'),
      count(600, 89, { ...cached, reasoningTokens: 60 }),
    ],
  },
];

for (const { name, text, events } of STREAMS) {
  test(`the documented stream of ${name} is translated, split at any byte and byte by byte`, (t) => {
    const bytes = Buffer.from(text);
    t.deepEqual(translate([bytes]), events);
    t.deepEqual(translate([...bytes].map((byte) => Uint8Array.of(byte))), events);
    const expected = JSON.stringify(events);
    for (let at = 1; at < bytes.length; at += 1) {
      const outcome = translate([bytes.subarray(0, at), bytes.subarray(at)]);
      // Compares text, because a thousand deepEqual calls are slow. On a difference, deepEqual shows where.
      if (JSON.stringify(outcome) !== expected) t.deepEqual(outcome, events, `split at ${at}`);
    }
  });

  test(`the documented stream of ${name} is an error if it is cut off anywhere before its end`, (t) => {
    const bytes = Buffer.from(text);
    // The last event is complete without its blank line.
    const completeLength = text.trimEnd().length + (bytes.length - text.length);
    for (let length = 0; length < bytes.length; length += 1) {
      const last = translate([bytes.subarray(0, length)]).at(-1);
      if (length >= completeLength) {
        t.deepEqual(last, events.at(-1), `after ${length} bytes`);
      } else if (!(last instanceof UpstreamError) || last.failure !== 'unavailable') {
        t.fail(`after ${length} bytes of ${bytes.length} the stream counts as complete`);
      }
    }
    t.regex((translate([bytes.subarray(0, 500)]).at(-1) as UpstreamError).message, /ended before it was/);
  });
}

test('usage values are cumulative: the last value of each field applies, and an absent or null value does not change it', (t) => {
  const start = { input_tokens: 100, cache_read_input_tokens: 50, output_tokens: 3 };
  const late = { input_tokens: 900, cache_read_input_tokens: null, output_tokens: 7 };
  t.deepEqual(
    translateText(toStream(begin(start), end(null, { output_tokens: 5 }), end('end_turn', late), STOP)),
    [
      START,
      partial(150, 3, { cachedTokens: 50 }),
      count(150, 5, { cachedTokens: 50 }),
      count(950, 7, { cachedTokens: 50 }),
      finish('stop', 'end_turn'),
      count(950, 7, { cachedTokens: 50 }),
    ],
  );
  t.deepEqual(translateText(toStream(begin({}), end('end_turn'), STOP)), [START, finish('stop', 'end_turn')]);
});

test('if a stream breaks off, its prompt tokens were already reported, so that they are billed', (t) => {
  const outcome = translateText(toStream(begin(), ...textBlock('Hi')));
  t.deepEqual(outcome.slice(0, -1), [START, partial(25, 1), delta({ content: 'Hi' })]);
  t.like(outcome.at(-1), { failure: 'unavailable' });
});

/** The error event of Anthropic's page on streaming. */
const OVERLOADED = { type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } };

test('an error within the stream follows the output before it', (t) => {
  const outcome = translateText(toStream(begin(), ...textBlock('Hi'), OVERLOADED, STOP));
  t.deepEqual(outcome.slice(0, -1), [START, partial(25, 1), delta({ content: 'Hi' })]);
  t.like(outcome.at(-1), {
    failure: 'unavailable',
    status: 529,
    message: 'the upstream responded with 529 (overloaded_error): Overloaded',
  });
  const limited = { type: 'error', error: { type: 'rate_limit_error', message: 'Slower' } };
  t.like(translateText(toStream(limited)).at(-1), { failure: 'rate_limited' });
});

test('invalid JSON is an error, and its text is not part of the message', (t) => {
  const [error] = translateText('data: {nope}\n\n');
  t.is((error as UpstreamError).failure, 'unavailable');
  t.false((error as UpstreamError).message.includes('nope'));
});

test('pings, unknown events and blocks, and anything after the end yield no events', (t) => {
  const events = [
    { type: 'ping' },
    begin(),
    { type: 'ping' },
    { type: 'vendor_event' },
    open(0, { type: 'hologram', text: 'x' }),
    extend(0, { type: 'hologram_delta', text: 'x' }),
    extend(7, { type: 'text_delta', text: 'of no block' }),
    close(0),
    { type: 'ping' },
    end('end_turn', { output_tokens: 2 }),
    STOP,
    ...textBlock('too late'),
    STOP,
    OVERLOADED,
  ];
  t.deepEqual(translateText(toStream(...events)), [
    START,
    partial(25, 1),
    count(25, 2),
    finish('stop', 'end_turn'),
    count(25, 2),
  ]);
});

test('an empty response is valid, and a refusal finishes with content_filter', (t) => {
  t.deepEqual(translateText(toStream(begin({}), end('refusal'), STOP)), [
    START,
    finish('content_filter', 'refusal'),
  ]);
  t.deepEqual(translateText(toStream(begin({}), end('model_context_window_exceeded'), STOP)), [
    START,
    finish('length', 'model_context_window_exceeded'),
  ]);
});

test('blocks that the vendor does not close end with the message', (t) => {
  const call = { type: 'tool_use', id: 'toolu_1', name: 'f', input: {} };
  const outcome = translateText(toStream(begin({}), open(0, call), end('tool_use'), STOP));
  t.deepEqual(outcome[2], delta({ tool_calls: [{ index: 0, function: { arguments: '{}' } }] }));
});

const cite = (url: string, title: string | null): object => ({
  type: 'citations_delta',
  citation: { type: 'web_search_result_location', url, title, encrypted_index: 'x', cited_text: 'y' },
});

/** Adapted from "Streaming" in Anthropic's page on the web search tool. */
const PAUSED = toStream(
  begin(),
  open(0, { type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: {} }),
  extend(0, { type: 'input_json_delta', partial_json: '{"query":' }),
  extend(0, { type: 'input_json_delta', partial_json: '"weather"}' }),
  close(0),
  open(1, {
    type: 'web_search_tool_result',
    tool_use_id: 'srvtoolu_1',
    content: [{ type: 'web_search_result', url: 'https://a.test/', title: 'A', encrypted_content: 'z' }],
  }),
  close(1),
  open(2, { type: 'text', text: '', citations: [] }),
  extend(2, cite('https://a.test/', 'A')),
  extend(2, { type: 'text_delta', text: 'Sunny' }),
  extend(2, cite('https://a.test/', 'A')),
  extend(2, cite('https://b.test/', null)),
  close(2),
  end('pause_turn', { output_tokens: 9 }),
  STOP,
);

test('after a pause the blocks are the same as in a non-streamed response, and the next stream continues the response', (t) => {
  const messageTranslator = createMessageTranslator({ model: 'claude-opus-4-8', remembers: false });
  const read = (text: string): ChatEvent[] => {
    const translator = createChatStreamTranslator(messageTranslator, null);
    const events: ChatEvent[] = [];
    translator.push(Buffer.from(text), events);
    events.push(...translator.end());
    t.true(translator.isDone);
    return events;
  };
  const source = (url: string, title: string | null): ChatEvent => ({
    type: 'sources',
    index: 0,
    sources: [{ url, title }],
  });
  t.deepEqual(read(PAUSED), [
    START,
    partial(25, 1),
    source('https://a.test/', 'A'),
    delta({ content: 'Sunny' }),
    source('https://b.test/', null),
    count(25, 9),
    count(25, 9),
  ]);
  t.true(messageTranslator.isPaused);
  const citation = (url: string, title: string | null): object => ({
    type: 'web_search_result_location',
    url,
    title,
    encrypted_index: 'x',
    cited_text: 'y',
  });
  t.deepEqual(messageTranslator.blocks, [
    { type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: { query: 'weather' } },
    {
      type: 'web_search_tool_result',
      tool_use_id: 'srvtoolu_1',
      content: [{ type: 'web_search_result', url: 'https://a.test/', title: 'A', encrypted_content: 'z' }],
    },
    {
      type: 'text',
      text: 'Sunny',
      citations: [
        citation('https://a.test/', 'A'),
        citation('https://a.test/', 'A'),
        citation('https://b.test/', null),
      ],
    },
  ]);
  const continuation = [...textBlock(' and warm'), end('end_turn', { output_tokens: 4 }), STOP];
  t.deepEqual(read(toStream(begin({ input_tokens: 60, output_tokens: 1 }), ...continuation)), [
    partial(85, 10),
    delta({ content: ' and warm' }),
    count(85, 13),
    finish('stop', 'end_turn'),
    count(85, 13),
  ]);
  t.false(messageTranslator.isPaused);
});
