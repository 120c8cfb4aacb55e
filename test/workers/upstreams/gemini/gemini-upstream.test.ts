import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

import test, { type ExecutionContext } from 'ava';

import { createGeminiUpstream } from '../../../../workers/upstreams/gemini/gemini-upstream.ts';
import { DEFAULT_HTTP_TIMEOUTS, type HttpTimeouts } from '../../../../workers/upstreams/http-client.ts';
import type { JsonRecord } from '../../../../shared/encoding/json-record.ts';
import {
  type CallContext,
  type ChatBody,
  type ChatEvent,
  nameCall,
  noUpstreamUsage,
  type Upstream,
  UpstreamError,
} from '../../../../workers/upstreams/upstream.ts';
import { flattenEvents } from '../../../support/chat-events.ts';
import { dropEarlyUsage } from '../../../support/early-usage.ts';
import { createContext, createImageCall, createTarget } from '../../../support/upstream-target.ts';

const KEY = 'AIzaSyD-0123456789abcdef';
const CHAT_BODY: ChatBody = { messages: [{ role: 'user', content: 'hi' }], max_tokens: 50 };
const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVQImWNwav0CAALIAbzDqqRyAAAAAElFTkSuQmCC';

interface Received {
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: JsonRecord;
}

type Respond = (response: ServerResponse, received: Received, index: number) => void;

interface Rig {
  readonly upstream: Required<Upstream>;
  readonly received: Received[];
}

/** A vendor that responds as the test specifies. */
async function startRig(
  t: ExecutionContext,
  respond: Respond,
  timeouts: Partial<HttpTimeouts> = {},
): Promise<Rig> {
  const received: Received[] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const body = JSON.parse(Buffer.concat(chunks).toString('utf8')) as JsonRecord;
      const one = { url: request.url ?? '', headers: request.headers, body };
      received.push(one);
      respond(response, one, received.length - 1);
    });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const upstream = createGeminiUpstream({
    baseUrl: `http://127.0.0.1:${port}`,
    timeouts: { ...DEFAULT_HTTP_TIMEOUTS, ...timeouts },
  });
  t.teardown(async () => {
    server.closeAllConnections();
    server.close();
    await upstream.close();
  });
  return { upstream, received };
}

/** A promise that one side awaits and the other resolves. */
function createLatch(): { readonly opened: Promise<void>; open(): void } {
  let open = (): void => undefined;
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { opened, open: () => open() };
}

function sendJson(response: ServerResponse, body: unknown, status = 200): void {
  response.writeHead(status, { 'content-type': 'application/json; charset=UTF-8' }).end(JSON.stringify(body));
}

const EVENT_STREAM = { 'content-type': 'text/event-stream' };

const toChunk = (text: string, finishReason?: string): JsonRecord => ({
  candidates: [
    {
      content: { parts: [{ text }], role: 'model' },
      ...(finishReason === undefined ? {} : { finishReason }),
    },
  ],
  usageMetadata: { promptTokenCount: 2, candidatesTokenCount: 3, totalTokenCount: 5 },
});

const toEvent = (chunk: object): string => `data: ${JSON.stringify(chunk)}\r\n\r\n`;

function chat(
  { upstream }: Rig,
  stream: boolean,
  {
    body = CHAT_BODY,
    model = 'gemini-2.5-flash',
    ...more
  }: Partial<CallContext> & { body?: ChatBody; model?: string } = {},
): AsyncIterable<ChatEvent> {
  const target = createTarget(model, { apiKey: KEY, imageUrls: 'fetch' });
  return flattenEvents(upstream.chat(target, body, stream, createContext(more)));
}

async function collect(run: AsyncIterable<ChatEvent>): Promise<{ events: ChatEvent[]; error: unknown }> {
  const events: ChatEvent[] = [];
  try {
    for await (const event of run) {
      events.push(event);
    }
    return { events: dropEarlyUsage(events), error: null };
  } catch (error) {
    return { events: dropEarlyUsage(events), error };
  }
}

const HELLO: ChatEvent[] = [
  { type: 'delta', index: 0, delta: { role: 'assistant', content: 'Grüße' } },
  { type: 'delta', index: 0, delta: { content: ' 👋' } },
  { type: 'finish', index: 0, finishReason: 'stop', nativeFinishReason: 'STOP' },
  { type: 'usage', usage: { ...noUpstreamUsage, promptTokens: 2, completionTokens: 3 } },
];

test('a non-streamed call goes to its path, with the key only in its header', async (t) => {
  const rig = await startRig(t, (response) => sendJson(response, toChunk('hello', 'STOP')));
  const { events, error } = await collect(chat(rig, false));
  t.is(error, null);
  t.deepEqual(
    events.map(({ type }) => type),
    ['delta', 'finish', 'usage'],
  );
  const [received] = rig.received;
  t.is(received?.url, '/v1beta/models/gemini-2.5-flash:generateContent');
  t.like(received?.headers, { 'x-goog-api-key': KEY, 'content-type': 'application/json' });
  t.is(received?.headers.authorization, undefined);
  t.deepEqual(received?.body, {
    contents: [{ role: 'user', parts: [{ text: 'hi' }] }],
    generationConfig: { maxOutputTokens: 50 },
  });
});

test('a stream is requested as SSE, and has the same events for any split', async (t) => {
  const bytes = Buffer.from(toEvent(toChunk('Grüße')) + toEvent(toChunk(' 👋', 'STOP')));
  const rig = await startRig(t, (response, _received, index) => {
    response.writeHead(200, EVENT_STREAM);
    if (index === 0) {
      response.end(bytes);
      return;
    }
    // One byte per write, each flushed before the next.
    const write = (at: number): void => {
      if (at === bytes.length) response.end();
      else response.write(bytes.subarray(at, at + 1), () => write(at + 1));
    };
    write(0);
  });
  for (let run = 0; run < 2; run += 1) {
    t.deepEqual(await collect(chat(rig, true)), { events: HELLO, error: null });
  }
  t.is(rig.received[0]?.url, '/v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse');
});

test('the response to a streamed request may also be one JSON value or an array of chunks', async (t) => {
  const rig = await startRig(t, (response, _received, index) =>
    sendJson(response, index === 0 ? [toChunk('Grüße'), toChunk(' 👋', 'STOP')] : toChunk('hello', 'STOP')),
  );
  t.deepEqual(await collect(chat(rig, true)), { events: HELLO, error: null });
  t.is((await collect(chat(rig, true))).events.length, 3);
});

test('a broken stream yields what arrived, then fails: cut, ended early, or with an error', async (t) => {
  const bare =
    '{\n  "error": {\n    "code": 503,\n    "status": "UNAVAILABLE",\n    "message": "overloaded"\n  }\n}\n';
  const breaks: ((response: ServerResponse) => void)[] = [
    (response) => response.destroy(),
    (response) => response.end(),
    (response) => response.end(bare),
    (response) => response.end(toEvent({ error: { code: 500, status: 'INTERNAL', message: 'oops' } })),
  ];
  const rig = await startRig(t, (response, _received, index) => {
    response.writeHead(200, EVENT_STREAM);
    response.write(toEvent(toChunk('a')), () => breaks[index]?.(response));
  });
  for (const _break of breaks) {
    const { events, error } = await collect(chat(rig, true));
    t.is(events.length, 1);
    t.true(error instanceof UpstreamError, String(error));
    t.is((error as UpstreamError).failure, 'unavailable');
  }
});

test('a stream that falls silent yields what arrived, then times out', async (t) => {
  const rig = await startRig(
    t,
    (response) => {
      response.writeHead(200, EVENT_STREAM);
      response.write(toEvent(toChunk('a')));
    },
    { betweenChunksMs: 60 },
  );
  const { events, error } = await collect(chat(rig, true));
  t.is(events.length, 1);
  t.is((error as UpstreamError).failure, 'timeout');
});

test('a connection cut after the finish loses nothing', async (t) => {
  const rig = await startRig(t, (response) => {
    response.writeHead(200, EVENT_STREAM);
    response.write(toEvent(toChunk('Grüße')) + toEvent(toChunk(' 👋', 'STOP')), () => response.destroy());
  });
  t.deepEqual(await collect(chat(rig, true)), { events: HELLO, error: null });
});

test('for every operation, every error status maps to its failure kind, and no message contains the key', async (t) => {
  const details = [
    { reason: 'API_KEY_INVALID' },
    { '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: '38s' },
  ];
  const refusals = [
    { status: 400, name: 'INVALID_ARGUMENT', more: {}, failure: 'rejected' },
    { status: 400, name: 'INVALID_ARGUMENT', more: { details: details.slice(0, 1) }, failure: 'auth' },
    { status: 429, name: 'RESOURCE_EXHAUSTED', more: { details: details.slice(1) }, failure: 'rate_limited' },
    { status: 503, name: 'UNAVAILABLE', more: {}, failure: 'unavailable' },
  ];
  for (const { status, name, more, failure } of refusals) {
    const error = { code: status, message: `no: ${KEY}`, status: name, ...more };
    const rig = await startRig(t, (response, { url }) =>
      sendJson(response, url.includes('stream') ? [{ error }] : { error }, status),
    );
    const target = createTarget('m', { apiKey: KEY });
    const errors = [
      (await collect(chat(rig, true))).error,
      (await collect(chat(rig, false))).error,
      await t.throwsAsync(
        rig.upstream.embed(target, { inputs: ['a'], dimensions: null, user: null }, createContext()),
      ),
      await t.throwsAsync(rig.upstream.generateImages(target, { ...IMAGE_CALL, n: 1 }, createContext())),
    ];
    for (const thrown of errors) {
      if (!(thrown instanceof UpstreamError)) {
        t.fail(String(thrown));
        continue;
      }
      t.like(thrown, { failure, status, retryAfterMs: status === 429 ? 38_000 : null });
      t.false(`${thrown.message} ${thrown.stack}`.includes(KEY));
    }
  }
});

test('a signature is remembered from a response and sent back to the vendor with the next request', async (t) => {
  const signed = {
    candidates: [
      {
        content: {
          parts: [
            { functionCall: { name: 'now', args: {} }, thoughtSignature: 'c2lnbmVk' },
            { functionCall: { name: 'here', args: {} } },
          ],
        },
        finishReason: 'STOP',
      },
    ],
  };
  const rig = await startRig(t, (response, _received, index) =>
    sendJson(response, index === 0 ? signed : toChunk('noon', 'STOP')),
  );
  const model = 'gemini-3-flash-preview';
  const { events } = await collect(chat(rig, false, { model }));
  const remembered = new Map<string, unknown>();
  const calls: JsonRecord[] = [];
  for (const event of events) {
    if (event.type === 'remember')
      remembered.set(nameCall(1, event.toolCallId), structuredClone(event.value));
    if (event.type === 'delta') calls.push(...(event.delta['tool_calls'] as JsonRecord[]));
  }
  t.is(remembered.size, 1);

  // Most clients send back only the fields that OpenAI's calls have.
  const keptCalls = calls.map(({ id, type, function: called }) => ({ id, type, function: called }));
  const messages = [
    ...CHAT_BODY.messages,
    { role: 'assistant', content: null, tool_calls: keptCalls },
    ...keptCalls.map(({ id }) => ({ role: 'tool', tool_call_id: id as string, content: '12:00' })),
  ];
  const next = chat(rig, false, { model, body: { messages }, recalled: remembered });
  t.is((await collect(next)).error, null);
  t.like(rig.received[1]?.body, {
    contents: [
      { role: 'user' },
      {
        role: 'model',
        parts: [
          { functionCall: { name: 'now', args: {} }, thoughtSignature: 'c2lnbmVk' },
          { functionCall: { name: 'here', args: {} } },
        ],
      },
      {
        role: 'user',
        parts: [
          { functionResponse: { name: 'now', response: { result: '12:00' } } },
          { functionResponse: { name: 'here', response: { result: '12:00' } } },
        ],
      },
    ],
  });
  t.false(JSON.stringify(rig.received[1]?.body).includes('call_gw_'));
});

test('images are loaded before the vendor is called; if an image cannot be loaded, the call fails with that error', async (t) => {
  const rig = await startRig(t, (response) => sendJson(response, toChunk('a cat', 'STOP')));
  const url = 'https://example.com/cat.png';
  const content = [{ type: 'image_url', image_url: { url } }];
  const body = { messages: [{ role: 'user', content }] };
  const media = {
    reserve: () => Promise.resolve(),
    loadImage: () => Promise.resolve({ mediaType: 'image/png', base64: PNG }),
  };
  t.is((await collect(chat(rig, false, { body, media }))).error, null);
  t.like(rig.received[0]?.body, {
    contents: [{ parts: [{ inlineData: { mimeType: 'image/png', data: PNG } }] }],
  });
  const reason = new Error('no image');
  t.is(
    (await collect(chat(rig, false, { body, media: { ...media, loadImage: () => Promise.reject(reason) } })))
      .error,
    reason,
  );
  t.is(rig.received.length, 1);
});

test('only the first tool call of a response is kept if one at a time is requested', async (t) => {
  const parts = ['f', 'g'].map((name) => ({ functionCall: { name, args: {} } }));
  const rig = await startRig(t, (response) =>
    sendJson(response, { candidates: [{ content: { parts }, finishReason: 'STOP' }] }),
  );
  const count = async (body: ChatBody): Promise<number> =>
    (await collect(chat(rig, false, { body }))).events.filter(({ type }) => type === 'delta').length;
  t.is(await count(CHAT_BODY), 2);
  t.is(await count({ ...CHAT_BODY, parallel_tool_calls: false }), 1);
});

test('all vectors are requested in one call, and returned in the order of the inputs', async (t) => {
  const rig = await startRig(t, (response, { body }) => {
    const requests = body['requests'] as { content: { parts: { text: string }[] } }[];
    const embeddings = requests.map(({ content }) => ({ values: [content.parts[0]!.text.length, 0.5] }));
    sendJson(response, { embeddings });
  });
  const call = { inputs: ['a', 'bcd'], dimensions: 2, user: null };
  const response = await rig.upstream.embed(createTarget('gemini-embedding-001'), call, createContext());
  t.true(response.vectors.equals(Buffer.from(Float32Array.from([1, 0.5, 3, 0.5]).buffer)));
  t.like(response, { dimensions: 2, promptTokens: null });
  t.is(rig.received.length, 1);
  t.is(rig.received[0]?.url, '/v1beta/models/gemini-embedding-001:batchEmbedContents');
  t.like(rig.received[0]?.body, {
    requests: call.inputs.map((text) => ({
      model: 'models/gemini-embedding-001',
      content: { parts: [{ text }] },
      outputDimensionality: 2,
    })),
  });
});

const IMAGE_CALL = createImageCall({ n: 3 });

const IMAGE_RESPONSE = {
  candidates: [
    { content: { parts: [{ inlineData: { mimeType: 'image/png', data: PNG } }] }, finishReason: 'STOP' },
  ],
  usageMetadata: { promptTokenCount: 2, candidatesTokenCount: 1290 },
};

test('several images are made in parallel calls, with their tokens added up', async (t) => {
  const waiting: ServerResponse[] = [];
  const rig = await startRig(t, (response) => {
    waiting.push(response);
    // No call gets a response before all calls have been made.
    if (waiting.length === 3) waiting.forEach((one) => sendJson(one, IMAGE_RESPONSE));
  });
  const target = createTarget('gemini-2.5-flash-image');
  const { images, usage } = await rig.upstream.generateImages(target, IMAGE_CALL, createContext());
  t.is(images.length, 3);
  t.true(images.every(({ bytes }) => bytes.equals(Buffer.from(PNG, 'base64'))));
  t.like(usage, { promptTokens: 6, completionTokens: 3870 });
  t.is(rig.received[0]?.url, '/v1beta/models/gemini-2.5-flash-image:generateContent');
});

test('if one image is refused, the others are still made and returned', async (t) => {
  const waiting: ServerResponse[] = [];
  const rig = await startRig(t, (response) => {
    waiting.push(response);
    if (waiting.length < 3) return;
    // The others get their images once the refusal has been sent.
    response.on('finish', () => waiting.slice(0, 2).forEach((one) => sendJson(one, IMAGE_RESPONSE)));
    sendJson(response, { promptFeedback: { blockReason: 'SAFETY' } });
  });
  const target = createTarget('gemini-2.5-flash-image');
  const { images, shortfallReason } = await rig.upstream.generateImages(target, IMAGE_CALL, createContext());
  t.is(images.length, 2);
  t.is(shortfallReason?.failure, 'rejected');
  t.is(waiting.length, 3);
});

test('if all images of a call are refused, the call fails', async (t) => {
  const rig = await startRig(t, (response) =>
    sendJson(response, { promptFeedback: { blockReason: 'SAFETY' } }),
  );
  const target = createTarget('gemini-2.5-flash-image');
  const drawing = rig.upstream.generateImages(target, IMAGE_CALL, createContext());
  const error = await t.throwsAsync(drawing, { instanceOf: UpstreamError });
  t.is(error.failure, 'rejected');
});

test('a cancelled call is aborted and fails with the caller’s reason', async (t) => {
  const closed = createLatch();
  const started = createLatch();
  const rig = await startRig(t, (response) => {
    response.on('close', () => closed.open());
    response.writeHead(200, EVENT_STREAM);
    response.write(toEvent(toChunk('a')), () => started.open());
  });
  const controller = new AbortController();
  const reason = new Error('the caller disconnected');
  const collecting = collect(chat(rig, true, { signal: controller.signal }));
  await started.opened;
  controller.abort(reason);
  t.is((await collecting).error, reason);
  await closed.opened;
  const drawingController = new AbortController();
  const drawing = rig.upstream.generateImages(
    createTarget('m'),
    IMAGE_CALL,
    createContext({ signal: drawingController.signal }),
  );
  drawingController.abort(reason);
  t.is(await t.throwsAsync(drawing), reason);
});
