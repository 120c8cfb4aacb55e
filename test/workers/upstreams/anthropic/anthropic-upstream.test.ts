import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setImmediate as nextTurn } from 'node:timers/promises';

import test, { type ExecutionContext } from 'ava';

import { createContext, createTarget } from '../../../support/upstream-target.ts';
import { createAnthropicUpstream } from '../../../../workers/upstreams/anthropic/anthropic-upstream.ts';
import {
  type CallContext,
  type ChatBody,
  type ChatEvent,
  nameCall,
  noUpstreamUsage,
  type UpstreamError,
  type UpstreamTarget,
} from '../../../../workers/upstreams/upstream.ts';

const KEY = 'sk-ant-api03-0123456789';
const MODEL = 'claude-sonnet-4-5';

interface Received {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: Readonly<Record<string, unknown>> & {
    readonly messages: { role: string; content: object[] }[];
  };
}

/** Responds to a request, given its number, starting at zero. */
type Script = (response: ServerResponse, number: number) => void | Promise<void>;

interface Rig {
  readonly received: Received[];
  readonly chat: (more?: More) => Promise<Outcome>;
}

interface More {
  readonly stream?: boolean;
  readonly fields?: object;
  readonly target?: Partial<UpstreamTarget>;
  readonly context?: Partial<CallContext>;
}

interface Outcome {
  readonly events: ChatEvent[];
  readonly error: UpstreamError | null;
}

async function startRig(t: ExecutionContext, script: Script): Promise<Rig> {
  const received: Received[] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const body = JSON.parse(Buffer.concat(chunks).toString('utf8')) as Received['body'];
      received.push({ path: request.url ?? '', headers: request.headers, body });
      void script(response, received.length - 1);
    });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const upstream = createAnthropicUpstream({ baseUrl: `http://127.0.0.1:${port}/behind` });
  t.teardown(async () => {
    server.closeAllConnections();
    await upstream.close();
    await new Promise((resolve) => server.close(resolve));
  });
  return {
    received,
    async chat({ stream = false, fields = {}, target = {}, context = {} } = {}) {
      const body = { messages: [{ role: 'user', content: 'Hi' }], max_tokens: 8192, ...fields } as ChatBody;
      const events: ChatEvent[] = [];
      try {
        const route = createTarget(MODEL, { apiKey: KEY, ...target });
        for await (const batch of upstream.chat(route, body, stream, createContext(context)))
          events.push(...batch);
      } catch (error) {
        return { events, error: error as UpstreamError };
      }
      return { events, error: null };
    },
  };
}

function toMessage(content: object[], stop_reason: string, more: object = {}): object {
  const usage = { input_tokens: 10, output_tokens: 5 };
  return {
    id: 'msg_1',
    type: 'message',
    role: 'assistant',
    model: MODEL,
    content,
    stop_reason,
    usage,
    ...more,
  };
}

/** The same message as the events of a stream. */
function toStream(content: object[], stop_reason: string): string {
  const blocks = content.flatMap((block, index) => [
    { type: 'content_block_start', index, content_block: block },
    { type: 'content_block_stop', index },
  ]);
  const events = [
    { type: 'message_start', message: { usage: { input_tokens: 10, output_tokens: 1 } } },
    { type: 'ping' },
    ...blocks,
    { type: 'message_delta', delta: { stop_reason }, usage: { output_tokens: 5 } },
    { type: 'message_stop' },
  ];
  return events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join('');
}

function sendJson(response: ServerResponse, body: object, status = 200, headers: object = {}): void {
  response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body));
}

function sendStream(response: ServerResponse, text: string): void {
  response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8' }).end(text);
}

const HELLO = [{ type: 'text', text: 'Grüße 👋' }];
const START: ChatEvent = { type: 'delta', index: 0, delta: { role: 'assistant', content: '' } };
const TEXT: ChatEvent = { type: 'delta', index: 0, delta: { content: 'Grüße 👋' } };
const STOP: ChatEvent = { type: 'finish', index: 0, finishReason: 'stop', nativeFinishReason: 'end_turn' };
const count = (promptTokens: number, completionTokens: number): ChatEvent => ({
  type: 'usage',
  usage: { ...noUpstreamUsage, promptTokens, completionTokens },
});
const FIRST_USAGE: ChatEvent = Object.assign(count(10, 1), { isPartial: true });
function textOf({ events }: Outcome): string {
  const words = events.flatMap((event) => (event.type === 'delta' ? event.delta['content'] : []));
  return words.filter((word) => typeof word === 'string').join('');
}

test('a non-streamed chat is one documented request and its response', async (t) => {
  const { received, chat } = await startRig(t, (response) =>
    sendJson(response, toMessage(HELLO, 'end_turn')),
  );
  t.deepEqual(await chat(), { events: [START, TEXT, STOP, count(10, 5)], error: null });
  t.is(received[0]?.path, '/behind/v1/messages');
  t.like(received[0]?.headers, {
    'x-api-key': KEY,
    'anthropic-version': '2023-06-01',
    'content-type': 'application/json',
    authorization: undefined,
    'anthropic-beta': undefined,
  });
  t.deepEqual(received[0]?.body, {
    model: MODEL,
    max_tokens: 8192,
    messages: [{ role: 'user', content: [{ type: 'text', text: 'Hi' }] }],
  } as unknown as Received['body']);
});

test('a streamed chat is translated for any split of its bytes', async (t) => {
  const { received, chat } = await startRig(t, async (response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8' });
    for (const byte of Buffer.from(toStream(HELLO, 'end_turn'))) {
      response.write(Uint8Array.of(byte));
      await nextTurn();
    }
    response.end();
  });
  const outcome = await chat({ stream: true });
  t.deepEqual(outcome, { events: [START, FIRST_USAGE, TEXT, count(10, 5), STOP, count(10, 5)], error: null });
  t.is(received[0]?.body['stream'], true);
});

test('a non-streamed response to a streamed request is accepted', async (t) => {
  const { chat } = await startRig(t, (response) => sendJson(response, toMessage(HELLO, 'end_turn')));
  t.deepEqual((await chat({ stream: true })).events, [START, TEXT, STOP, count(10, 5)]);
});

test('a rate limit error is reported with its retry delay, and its request id is logged', async (t) => {
  const { chat } = await startRig(t, (response) => {
    const error = { type: 'error', error: { type: 'rate_limit_error', message: `Slower, ${KEY}` } };
    sendJson(response, error, 429, { 'retry-after': '3', 'request-id': 'req_011C' });
  });
  const logged: object[] = [];
  const log = { warn: () => undefined, debug: (fields: object) => void logged.push(fields) };
  const { error } = await chat({ stream: true, context: { log } });
  t.like(error, { name: 'UpstreamError', failure: 'rate_limited', status: 429, retryAfterMs: 3000 });
  t.false(error?.message.includes(KEY));
  t.deepEqual(logged, [{ vendorRequestId: 'req_011C' }]);
});

test('a stream that is cut off or contains an error emits the output before that point and then fails', async (t) => {
  const text = toStream(HELLO, 'end_turn');
  const head = text.slice(0, text.indexOf('event: message_delta'));
  const error = { type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } };
  const { chat } = await startRig(t, (response, number) => {
    if (number === 0) sendStream(response, head);
    else sendStream(response, `${head}event: error\ndata: ${JSON.stringify(error)}\n\n`);
  });
  for (const status of [null, 529]) {
    const outcome = await chat({ stream: true });
    t.deepEqual(outcome.events, [START, FIRST_USAGE, TEXT]);
    t.like(outcome.error, { failure: 'unavailable', status });
  }
});

const SEARCH = { type: 'server_tool_use', id: 'srv_1', name: 'web_search', input: { query: 'x' } };
const FOUND = { type: 'web_search_tool_result', tool_use_id: 'srv_1', content: [] };

for (const stream of [false, true]) {
  const mode = stream ? 'streamed' : 'not streamed';
  const send = (response: ServerResponse, content: object[], reason: string): void =>
    stream ? sendStream(response, toStream(content, reason)) : sendJson(response, toMessage(content, reason));

  test(`output before a pause is sent back unchanged, and the calls form one response with the sum of usage, ${mode}`, async (t) => {
    const { received, chat } = await startRig(t, (response, number) => {
      if (number === 0) send(response, [SEARCH, FOUND], 'pause_turn');
      else if (number === 1) send(response, [{ type: 'text', text: 'So: ' }], 'pause_turn');
      else send(response, HELLO, 'end_turn');
    });
    const outcome = await chat({ stream, fields: { web_search: true } });
    t.is(outcome.error, null);
    t.is(textOf(outcome), 'So: Grüße 👋');
    t.deepEqual(outcome.events.slice(-2), [STOP, count(30, 15)]);
    t.is(outcome.events.filter(({ type }) => type === 'finish').length, 1);
    t.deepEqual(
      received.map(({ body }) => body.messages.slice(1)),
      [
        [],
        [{ role: 'assistant', content: [SEARCH, FOUND] }],
        [{ role: 'assistant', content: [SEARCH, FOUND, { type: 'text', text: 'So: ' }] }],
      ],
    );
    t.deepEqual(received[2]?.body['tools'], received[0]?.body['tools']);
  });

  test(`the third pause ends the response, because nothing is reserved for a fourth call, ${mode}`, async (t) => {
    const { received, chat } = await startRig(t, (response) => send(response, HELLO, 'pause_turn'));
    const outcome = await chat({ stream, fields: { web_search: true } });
    t.is(received.length, 3);
    t.deepEqual(outcome.events.slice(-2), [
      { type: 'finish', index: 0, finishReason: 'length', nativeFinishReason: 'pause_turn' },
      count(30, 15),
    ]);
  });
}

const THOUGHT = { type: 'thinking', thinking: 'Hm.', signature: 'c2ln' };
const CALL = { type: 'tool_use', id: 'toolu_1', name: 'f', input: { a: 1 } };
const tools = [{ type: 'function', function: { name: 'f' } }];

test('the next request includes remembered thinking', async (t) => {
  const { received, chat } = await startRig(t, (response) =>
    sendJson(response, toMessage([THOUGHT, CALL], 'tool_use')),
  );
  const fields = { tools, reasoning_effort: 'low' };
  const { events } = await chat({ fields });
  const remembered = events.flatMap((event) =>
    event.type === 'remember' ? [[nameCall(1, event.toolCallId), event.value] as const] : [],
  );
  const messages = [
    { role: 'user', content: 'Hi' },
    {
      role: 'assistant',
      content: null,
      tool_calls: [{ id: 'toolu_1', type: 'function', function: { name: 'f', arguments: '{"a":1}' } }],
    },
    { role: 'tool', tool_call_id: 'toolu_1', content: 'done' },
  ];
  const recalled = new Map(remembered);
  await chat({ fields: { ...fields, messages }, context: { recalled } });
  t.deepEqual(received[1]?.body.messages[1], { role: 'assistant', content: [THOUGHT, CALL] });
  t.deepEqual(received[1]?.body['thinking'], { type: 'enabled', budget_tokens: 4096 });

  // Thinking is not sent if the request does not use it.
  await chat({ fields: { tools, messages }, context: { recalled } });
  t.deepEqual(received[2]?.body.messages[1], { role: 'assistant', content: [CALL] });
  t.is(received[2]?.body['thinking'], undefined);
});

test('if a model binds thinking blocks to a conversation, they are sent with permission to drop them', async (t) => {
  const model = 'claude-opus-5-5';
  const { received, chat } = await startRig(t, (response) =>
    sendJson(response, toMessage(HELLO, 'end_turn')),
  );
  const call = { id: 'toolu_1', type: 'function', function: { name: 'f', arguments: '' } };
  const messages = [
    { role: 'user', content: 'Hi' },
    { role: 'assistant', tool_calls: [call] },
    { role: 'tool', tool_call_id: 'toolu_1', content: 'done' },
  ];
  const value = { kind: 'anthropic', model, blocks: [THOUGHT] };
  await chat({
    fields: { tools, messages },
    target: { model },
    context: { recalled: new Map([[nameCall(1, 'toolu_1'), value]]) },
  });
  t.is(received[0]?.headers['anthropic-beta'], 'thinking-binding-controls-2026-08-01');
  t.like(received[0]?.body['thinking'], { block_binding: { prefix_mismatch_behavior: 'drop_block' } });
});

test('data URIs are always loaded, and links only if they are not passed to the vendor', async (t) => {
  const { received, chat } = await startRig(t, (response) =>
    sendJson(response, toMessage(HELLO, 'end_turn')),
  );
  const [link, data] = ['https://a.test/a.png', 'data:image/png;base64,AAAA'];
  const content = [link, data].map((url) => ({ type: 'image_url', image_url: { url } }));
  const fields = { messages: [{ role: 'user', content }] };
  const media: CallContext['media'] = {
    reserve: () => Promise.resolve(),
    loadImage: (url) => Promise.resolve({ mediaType: 'image/gif', base64: `of ${url.slice(0, 5)}` }),
  };
  const source = (url: string): object => ({
    type: 'image',
    source: { type: 'base64', media_type: 'image/gif', data: `of ${url.slice(0, 5)}` },
  });
  await chat({ fields, context: { media } });
  await chat({ fields, context: { media }, target: { imageUrls: 'fetch' } });
  t.deepEqual(received[0]?.body.messages[0]?.content, [
    { type: 'image', source: { type: 'url', url: link } },
    source(data),
  ]);
  t.deepEqual(received[1]?.body.messages[0]?.content, [source(link), source(data)]);
});

test('a request that the API would reject is never sent', async (t) => {
  const { received, chat } = await startRig(t, (response) =>
    sendJson(response, toMessage(HELLO, 'end_turn')),
  );
  const messages = [{ role: 'tool', tool_call_id: 'x', content: 'done' }];
  t.like((await chat({ fields: { messages } })).error, { name: 'UpstreamError', failure: 'rejected' });
  t.is(received.length, 0);
});

test('aborting a chat cuts off the vendor call', async (t) => {
  const cancellation = new AbortController();
  const closings: Promise<unknown>[] = [];
  const { chat } = await startRig(t, (response) => {
    closings.push(once(response, 'close'));
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    const text = toStream(HELLO, 'end_turn');
    response.write(text.slice(0, text.indexOf('event: message_delta')), () =>
      cancellation.abort(new Error('gone')),
    );
  });
  const { error } = await chat({ stream: true, context: { signal: cancellation.signal } });
  t.is((error as Error | null)?.message, 'gone');
  t.is(closings.length, 1);
  await Promise.all(closings);
});
