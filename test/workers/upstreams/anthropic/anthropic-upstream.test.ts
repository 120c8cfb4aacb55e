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

interface ReceivedRequest {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: Readonly<Record<string, unknown>> & {
    readonly messages: { role: string; content: object[] }[];
  };
}

/** Responds to the request with this number, from zero. */
type Script = (response: ServerResponse, number: number) => void | Promise<void>;

interface Rig {
  readonly received: ReceivedRequest[];
  readonly listen: (more?: More) => Promise<Said>;
}

interface More {
  readonly stream?: boolean;
  readonly fields?: object;
  readonly target?: Partial<UpstreamTarget>;
  readonly context?: Partial<CallContext>;
}

interface Said {
  readonly events: ChatEvent[];
  readonly error: UpstreamError | null;
}

async function startRig(t: ExecutionContext, script: Script): Promise<Rig> {
  const received: ReceivedRequest[] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const body = JSON.parse(Buffer.concat(chunks).toString('utf8')) as ReceivedRequest['body'];
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
    async listen({ stream = false, fields = {}, target = {}, context = {} } = {}) {
      const body = { messages: [{ role: 'user', content: 'Hi' }], max_tokens: 8192, ...fields } as ChatBody;
      const events: ChatEvent[] = [];
      try {
        const route = createTarget(MODEL, { apiKey: KEY, ...target });
        for await (const event of upstream.chat(route, body, stream, createContext(context))) {
          events.push(event);
        }
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

/** The same message as stream events. */
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
const WORDS: ChatEvent = { type: 'delta', index: 0, delta: { content: 'Grüße 👋' } };
const STOP: ChatEvent = { type: 'finish', index: 0, finishReason: 'stop', nativeFinishReason: 'end_turn' };
const count = (promptTokens: number, completionTokens: number): ChatEvent => ({
  type: 'usage',
  usage: { ...noUpstreamUsage, promptTokens, completionTokens },
});
const BEGUN: ChatEvent = Object.assign(count(10, 1), { isPartial: true });
function textOf({ events }: Said): string {
  const words = events.flatMap((event) => (event.type === 'delta' ? event.delta['content'] : []));
  return words.filter((word) => typeof word === 'string').join('');
}

test('a chat that is not streamed is one documented request and its response', async (t) => {
  const { received, listen } = await startRig(t, (response) =>
    sendJson(response, toMessage(HELLO, 'end_turn')),
  );
  t.deepEqual(await listen(), { events: [START, WORDS, STOP, count(10, 5)], error: null });
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
  } as unknown as ReceivedRequest['body']);
});

test('a streamed chat is parsed correctly however its bytes arrive', async (t) => {
  const { received, listen } = await startRig(t, async (response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8' });
    for (const byte of Buffer.from(toStream(HELLO, 'end_turn'))) {
      response.write(Uint8Array.of(byte));
      await nextTurn();
    }
    response.end();
  });
  const said = await listen({ stream: true });
  t.deepEqual(said, { events: [START, BEGUN, WORDS, count(10, 5), STOP, count(10, 5)], error: null });
  t.is(received[0]?.body['stream'], true);
});

test('a response that is not streamed is accepted for a streamed request', async (t) => {
  const { listen } = await startRig(t, (response) => sendJson(response, toMessage(HELLO, 'end_turn')));
  t.deepEqual((await listen({ stream: true })).events, [START, WORDS, STOP, count(10, 5)]);
});

test('a rejection is reported with its retry delay, and its id is logged', async (t) => {
  const { listen } = await startRig(t, (response) => {
    const error = { type: 'error', error: { type: 'rate_limit_error', message: `Slower, ${KEY}` } };
    sendJson(response, error, 429, { 'retry-after': '3', 'request-id': 'req_011C' });
  });
  const logged: object[] = [];
  const log = { warn: () => undefined, debug: (fields: object) => void logged.push(fields) };
  const { error } = await listen({ stream: true, context: { log } });
  t.like(error, { name: 'UpstreamError', failure: 'rate_limited', status: 429, retryAfterMs: 3000 });
  t.false(error?.message.includes(KEY));
  t.deepEqual(logged, [{ vendorRequestId: 'req_011C' }]);
});

test('a stream that is cut or contains an error fails after the output that it sent', async (t) => {
  const text = toStream(HELLO, 'end_turn');
  const head = text.slice(0, text.indexOf('event: message_delta'));
  const error = { type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } };
  const { listen } = await startRig(t, (response, number) => {
    if (number === 0) sendStream(response, head);
    else sendStream(response, `${head}event: error\ndata: ${JSON.stringify(error)}\n\n`);
  });
  for (const status of [null, 529]) {
    const said = await listen({ stream: true });
    t.deepEqual(said.events, [START, BEGUN, WORDS]);
    t.like(said.error, { failure: 'unavailable', status });
  }
});

const SEARCH = { type: 'server_tool_use', id: 'srv_1', name: 'web_search', input: { query: 'x' } };
const FOUND = { type: 'web_search_tool_result', tool_use_id: 'srv_1', content: [] };

for (const stream of [false, true]) {
  const candidate = stream ? 'streamed' : 'whole';
  const send = (response: ServerResponse, content: object[], reason: string): void =>
    stream ? sendStream(response, toStream(content, reason)) : sendJson(response, toMessage(content, reason));

  test(`a paused message is sent back unchanged, and the result is one response with the sum of usage, ${candidate}`, async (t) => {
    const { received, listen } = await startRig(t, (response, number) => {
      if (number === 0) send(response, [SEARCH, FOUND], 'pause_turn');
      else if (number === 1) send(response, [{ type: 'text', text: 'So: ' }], 'pause_turn');
      else send(response, HELLO, 'end_turn');
    });
    const said = await listen({ stream, fields: { web_search: true } });
    t.is(said.error, null);
    t.is(textOf(said), 'So: Grüße 👋');
    t.deepEqual(said.events.slice(-2), [STOP, count(30, 15)]);
    t.is(said.events.filter(({ type }) => type === 'finish').length, 1);
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

  test(`the third pause ends the response, because no more is reserved, ${candidate}`, async (t) => {
    const { received, listen } = await startRig(t, (response) => send(response, HELLO, 'pause_turn'));
    const said = await listen({ stream, fields: { web_search: true } });
    t.is(received.length, 3);
    t.deepEqual(said.events.slice(-2), [
      { type: 'finish', index: 0, finishReason: 'length', nativeFinishReason: 'pause_turn' },
      count(30, 15),
    ]);
  });
}

const THOUGHT = { type: 'thinking', thinking: 'Hm.', signature: 'c2ln' };
const CALL = { type: 'tool_use', id: 'toolu_1', name: 'f', input: { a: 1 } };
const tools = [{ type: 'function', function: { name: 'f' } }];

test('with the saved data of a response, the next request continues its thinking', async (t) => {
  const { received, listen } = await startRig(t, (response) =>
    sendJson(response, toMessage([THOUGHT, CALL], 'tool_use')),
  );
  const fields = { tools, reasoning_effort: 'low' };
  const { events } = await listen({ fields });
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
  await listen({ fields: { ...fields, messages }, context: { recalled } });
  t.deepEqual(received[1]?.body.messages[1], { role: 'assistant', content: [THOUGHT, CALL] });
  t.deepEqual(received[1]?.body['thinking'], { type: 'enabled', budget_tokens: 4096 });

  // Nothing is sent if the request does not think.
  await listen({ fields: { tools, messages }, context: { recalled } });
  t.deepEqual(received[2]?.body.messages[1], { role: 'assistant', content: [CALL] });
  t.is(received[2]?.body['thinking'], undefined);
});

test('blocks that a model binds to its conversation are sent with permission to drop them', async (t) => {
  const model = 'claude-opus-5-5';
  const { received, listen } = await startRig(t, (response) =>
    sendJson(response, toMessage(HELLO, 'end_turn')),
  );
  const call = { id: 'toolu_1', type: 'function', function: { name: 'f', arguments: '' } };
  const messages = [
    { role: 'user', content: 'Hi' },
    { role: 'assistant', tool_calls: [call] },
    { role: 'tool', tool_call_id: 'toolu_1', content: 'done' },
  ];
  const value = { kind: 'anthropic', model, blocks: [THOUGHT] };
  await listen({
    fields: { tools, messages },
    target: { model },
    context: { recalled: new Map([[nameCall(1, 'toolu_1'), value]]) },
  });
  t.is(received[0]?.headers['anthropic-beta'], 'thinking-binding-controls-2026-08-01');
  t.like(received[0]?.body['thinking'], { block_binding: { prefix_mismatch_behavior: 'drop_block' } });
});

test('data URIs are always loaded, links only if the vendor does not get them', async (t) => {
  const { received, listen } = await startRig(t, (response) =>
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
  await listen({ fields, context: { media } });
  await listen({ fields, context: { media }, target: { imageUrls: 'fetch' } });
  t.deepEqual(received[0]?.body.messages[0]?.content, [
    { type: 'image', source: { type: 'url', url: link } },
    source(data),
  ]);
  t.deepEqual(received[1]?.body.messages[0]?.content, [source(link), source(data)]);
});

test('a request that the API would reject is not sent', async (t) => {
  const { received, listen } = await startRig(t, (response) =>
    sendJson(response, toMessage(HELLO, 'end_turn')),
  );
  const messages = [{ role: 'tool', tool_call_id: 'x', content: 'done' }];
  t.like((await listen({ fields: { messages } })).error, { name: 'UpstreamError', failure: 'rejected' });
  t.is(received.length, 0);
});

test('a caller that stops reading cancels the vendor call', async (t) => {
  const caller = new AbortController();
  const closings: Promise<unknown>[] = [];
  const { listen } = await startRig(t, (response) => {
    closings.push(once(response, 'close'));
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    const text = toStream(HELLO, 'end_turn');
    response.write(text.slice(0, text.indexOf('event: message_delta')), () =>
      caller.abort(new Error('gone')),
    );
  });
  const { error } = await listen({ stream: true, context: { signal: caller.signal } });
  t.is((error as Error | null)?.message, 'gone');
  t.is(closings.length, 1);
  await Promise.all(closings);
});
