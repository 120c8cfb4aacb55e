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
import { dropEarlyUsage } from '../../../support/early-usage.ts';
import { createContext, createImageCall, createTarget } from '../../../support/upstream-target.ts';

const KEY = 'AIzaSyD-0123456789abcdef';
const ASK: ChatBody = { messages: [{ role: 'user', content: 'hi' }], max_tokens: 50 };
const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVQImWNwav0CAALIAbzDqqRyAAAAAElFTkSuQmCC';

interface ReceivedRequest {
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: JsonRecord;
}

type Answer = (response: ServerResponse, received: ReceivedRequest, index: number) => void;

interface Rig {
  readonly upstream: Required<Upstream>;
  readonly received: ReceivedRequest[];
}

/** A vendor that responds with what the test specifies. */
async function startRig(
  t: ExecutionContext,
  answer: Answer,
  timeouts: Partial<HttpTimeouts> = {},
): Promise<Rig> {
  const received: ReceivedRequest[] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const body = JSON.parse(Buffer.concat(chunks).toString('utf8')) as JsonRecord;
      const one = { url: request.url ?? '', headers: request.headers, body };
      received.push(one);
      answer(response, one, received.length - 1);
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

/** A condition that one side waits for and the other fulfils. */
function createCondition(): { readonly opened: Promise<void>; open(): void } {
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

const say = (text: string, finishReason?: string): JsonRecord => ({
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
    body = ASK,
    model = 'gemini-2.5-flash',
    ...more
  }: Partial<CallContext> & { body?: ChatBody; model?: string } = {},
): AsyncIterable<ChatEvent> {
  return upstream.chat(
    createTarget(model, { apiKey: KEY, imageUrls: 'fetch' }),
    body,
    stream,
    createContext(more),
  );
}

async function listen(run: AsyncIterable<ChatEvent>): Promise<{ events: ChatEvent[]; error: unknown }> {
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

test('a request that is not streamed is sent to its path, with the key only in its header', async (t) => {
  const rig = await startRig(t, (response) => sendJson(response, say('hello', 'STOP')));
  const { events, error } = await listen(chat(rig, false));
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

test('a streamed request asks for events, and gives the same output however the response is split', async (t) => {
  const bytes = Buffer.from(toEvent(say('Grüße')) + toEvent(say(' 👋', 'STOP')));
  const rig = await startRig(t, (response, _asked, index) => {
    response.writeHead(200, EVENT_STREAM);
    if (index === 0) {
      response.end(bytes);
      return;
    }
    // One byte per write, each sent before the next.
    const write = (at: number): void => {
      if (at === bytes.length) response.end();
      else response.write(bytes.subarray(at, at + 1), () => write(at + 1));
    };
    write(0);
  });
  for (let run = 0; run < 2; run += 1) {
    t.deepEqual(await listen(chat(rig, true)), { events: HELLO, error: null });
  }
  t.is(rig.received[0]?.url, '/v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse');
});

test('an unstreamed response to a streamed request, as one value or an array of chunks, is accepted', async (t) => {
  const rig = await startRig(t, (response, _asked, index) =>
    sendJson(response, index === 0 ? [say('Grüße'), say(' 👋', 'STOP')] : say('hello', 'STOP')),
  );
  t.deepEqual(await listen(chat(rig, true)), { events: HELLO, error: null });
  t.is((await listen(chat(rig, true))).events.length, 3);
});

test('a broken stream fails after its output, whether it is cut, ends early or contains an error', async (t) => {
  const bare =
    '{\n  "error": {\n    "code": 503,\n    "status": "UNAVAILABLE",\n    "message": "overloaded"\n  }\n}\n';
  const breaks: ((response: ServerResponse) => void)[] = [
    (response) => response.destroy(),
    (response) => response.end(),
    (response) => response.end(bare),
    (response) => response.end(toEvent({ error: { code: 500, status: 'INTERNAL', message: 'oops' } })),
  ];
  const rig = await startRig(t, (response, _asked, index) => {
    response.writeHead(200, EVENT_STREAM);
    response.write(toEvent(say('a')), () => breaks[index]?.(response));
  });
  for (const _break of breaks) {
    const { events, error } = await listen(chat(rig, true));
    t.is(events.length, 1);
    t.true(error instanceof UpstreamError, String(error));
    t.is((error as UpstreamError).failure, 'unavailable');
  }
});

test('a silent stream times out after its output', async (t) => {
  const rig = await startRig(
    t,
    (response) => {
      response.writeHead(200, EVENT_STREAM);
      response.write(toEvent(say('a')));
    },
    { betweenChunksMs: 60 },
  );
  const { events, error } = await listen(chat(rig, true));
  t.is(events.length, 1);
  t.is((error as UpstreamError).failure, 'timeout');
});

test('a connection that is cut after the finish loses nothing', async (t) => {
  const rig = await startRig(t, (response) => {
    response.writeHead(200, EVENT_STREAM);
    response.write(toEvent(say('Grüße')) + toEvent(say(' 👋', 'STOP')), () => response.destroy());
  });
  t.deepEqual(await listen(chat(rig, true)), { events: HELLO, error: null });
});

test('every rejection has its category, without the key, whatever was requested', async (t) => {
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
      (await listen(chat(rig, true))).error,
      (await listen(chat(rig, false))).error,
      await t.throwsAsync(
        rig.upstream.embed(target, { inputs: ['a'], dimensions: null, user: null }, createContext()),
      ),
      await t.throwsAsync(rig.upstream.generateImages(target, { ...DRAW, n: 1 }, createContext())),
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

test('saved data of a response is loaded again, in one read, and sent back to the vendor', async (t) => {
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
  const rig = await startRig(t, (response, _asked, index) =>
    sendJson(response, index === 0 ? signed : say('noon', 'STOP')),
  );
  const model = 'gemini-3-flash-preview';
  const { events } = await listen(chat(rig, false, { model }));
  const remembered = new Map<string, unknown>();
  const calls: JsonRecord[] = [];
  for (const event of events) {
    if (event.type === 'remember')
      remembered.set(nameCall(1, event.toolCallId), structuredClone(event.value));
    if (event.type === 'delta') calls.push(...(event.delta['tool_calls'] as JsonRecord[]));
  }
  t.is(remembered.size, 1);

  // Most clients keep only the OpenAI fields of a call.
  const kept = calls.map(({ id, type, function: calledFunction }) => ({
    id,
    type,
    function: calledFunction,
  }));
  const messages = [
    ...ASK.messages,
    { role: 'assistant', content: null, tool_calls: kept },
    ...kept.map(({ id }) => ({ role: 'tool', tool_call_id: id as string, content: '12:00' })),
  ];
  const next = chat(rig, false, { model, body: { messages }, recalled: remembered });
  t.is((await listen(next)).error, null);
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

test('images are loaded before the vendor is called, and one that cannot be loaded is the error', async (t) => {
  const rig = await startRig(t, (response) => sendJson(response, say('a cat', 'STOP')));
  const url = 'https://example.com/cat.png';
  const content = [{ type: 'image_url', image_url: { url } }];
  const body = { messages: [{ role: 'user', content }] };
  const media = {
    reserve: () => Promise.resolve(),
    loadImage: () => Promise.resolve({ mediaType: 'image/png', base64: PNG }),
  };
  t.is((await listen(chat(rig, false, { body, media }))).error, null);
  t.like(rig.received[0]?.body, {
    contents: [{ parts: [{ inlineData: { mimeType: 'image/png', data: PNG } }] }],
  });
  const reason = new Error('no picture');
  t.is(
    (await listen(chat(rig, false, { body, media: { ...media, loadImage: () => Promise.reject(reason) } })))
      .error,
    reason,
  );
  t.is(rig.received.length, 1);
});

test('if parallel tool calls are disabled, only the first one of a response is kept', async (t) => {
  const parts = ['f', 'g'].map((name) => ({ functionCall: { name, args: {} } }));
  const rig = await startRig(t, (response) =>
    sendJson(response, { candidates: [{ content: { parts }, finishReason: 'STOP' }] }),
  );
  const count = async (body: ChatBody): Promise<number> =>
    (await listen(chat(rig, false, { body }))).events.filter(({ type }) => type === 'delta').length;
  t.is(await count(ASK), 2);
  t.is(await count({ ...ASK, parallel_tool_calls: false }), 1);
});

test('all vectors are requested in one call, and returned in the order of their inputs', async (t) => {
  const rig = await startRig(t, (response, { body }) => {
    const requests = body['requests'] as { content: { parts: { text: string }[] } }[];
    const embeddings = requests.map(({ content }) => ({ values: [content.parts[0]!.text.length, 0.5] }));
    sendJson(response, { embeddings });
  });
  const call = { inputs: ['a', 'bcd'], dimensions: 2, user: null };
  const answer = await rig.upstream.embed(createTarget('gemini-embedding-001'), call, createContext());
  t.true(answer.vectors.equals(Buffer.from(Float32Array.from([1, 0.5, 3, 0.5]).buffer)));
  t.like(answer, { dimensions: 2, promptTokens: null });
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

const DRAW = createImageCall({ n: 3 });

const DRAWN = {
  candidates: [
    { content: { parts: [{ inlineData: { mimeType: 'image/png', data: PNG } }] }, finishReason: 'STOP' },
  ],
  usageMetadata: { promptTokenCount: 2, candidatesTokenCount: 1290 },
};

test('each requested image is its own concurrent call, and their tokens are added', async (t) => {
  const waiting: ServerResponse[] = [];
  const rig = await startRig(t, (response) => {
    waiting.push(response);
    // None gets a response before all have been requested.
    if (waiting.length === 3) waiting.forEach((one) => sendJson(one, DRAWN));
  });
  const target = createTarget('gemini-2.5-flash-image');
  const { images, usage } = await rig.upstream.generateImages(target, DRAW, createContext());
  t.is(images.length, 3);
  t.true(images.every(({ bytes }) => bytes.equals(Buffer.from(PNG, 'base64'))));
  t.like(usage, { promptTokens: 6, completionTokens: 3870 });
  t.is(rig.received[0]?.url, '/v1beta/models/gemini-2.5-flash-image:generateContent');
});

test('a rejected image does not abort the others, which are the response', async (t) => {
  const waiting: ServerResponse[] = [];
  const rig = await startRig(t, (response) => {
    waiting.push(response);
    if (waiting.length < 3) return;
    // The others are drawn after the rejection has been sent.
    response.on('finish', () => waiting.slice(0, 2).forEach((one) => sendJson(one, DRAWN)));
    sendJson(response, { promptFeedback: { blockReason: 'SAFETY' } });
  });
  const target = createTarget('gemini-2.5-flash-image');
  const { images, missing } = await rig.upstream.generateImages(target, DRAW, createContext());
  t.is(images.length, 2);
  t.is(missing?.failure, 'rejected');
  t.is(waiting.length, 3);
});

test('if all images are rejected the result is an error', async (t) => {
  const rig = await startRig(t, (response) =>
    sendJson(response, { promptFeedback: { blockReason: 'SAFETY' } }),
  );
  const target = createTarget('gemini-2.5-flash-image');
  const drawing = rig.upstream.generateImages(target, DRAW, createContext());
  const error = await t.throwsAsync(drawing, { instanceOf: UpstreamError });
  t.is(error.failure, 'rejected');
});

test('when the caller disconnects, the call ends with the caller’s reason', async (t) => {
  const callEnded = createCondition();
  const callStarted = createCondition();
  const rig = await startRig(t, (response) => {
    response.on('close', () => callEnded.open());
    response.writeHead(200, EVENT_STREAM);
    response.write(toEvent(say('a')), () => callStarted.open());
  });
  const controller = new AbortController();
  const reason = new Error('the caller left');
  const listening = listen(chat(rig, true, { signal: controller.signal }));
  await callStarted.opened;
  controller.abort(reason);
  t.is((await listening).error, reason);
  await callEnded.opened;
  const drawing = new AbortController();
  const draw = rig.upstream.generateImages(
    createTarget('m'),
    DRAW,
    createContext({ signal: drawing.signal }),
  );
  drawing.abort(reason);
  t.is(await t.throwsAsync(draw), reason);
});
