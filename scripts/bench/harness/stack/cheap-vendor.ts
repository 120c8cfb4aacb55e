import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { parseArgs } from 'node:util';
import { logUncaught } from '../../../../shared/platform/runtime/log-uncaught.ts';

/**
 * A vendor with OpenAI's API that takes almost no CPU: its responses are prepared. All chats have the same response, and
 * streams wait for readers that do not keep up. Embedding calls take a fixed time and a time per input, with limited
 * concurrency, like a real vendor.
 */

logUncaught('cheap-vendor', { fd: 2 });

const { values } = parseArgs({
  options: {
    dimensions: { type: 'string', default: '256' },
    'per-call-ms': { type: 'string', default: '0' },
    'per-input-ms': { type: 'string', default: '0' },
    'max-concurrency': { type: 'string', default: '1000000' },
    tokens: { type: 'string', default: '50' },
    'per-token-ms': { type: 'string', default: '0' },
  },
});
const perCallMs = Number(values['per-call-ms']);
const perInputMs = Number(values['per-input-ms']);
const maxConcurrency = Number(values['max-concurrency']);
const tokens = Number(values.tokens);
const perTokenMs = Number(values['per-token-ms']);

const vector = Array.from({ length: Number(values.dimensions) }, (_, i) => Math.sin(i) / 16);
const vectorOf = {
  float: JSON.stringify(vector),
  base64: JSON.stringify(Buffer.from(new Float32Array(vector).buffer).toString('base64')),
};
const usage = { prompt_tokens: 10, completion_tokens: tokens, total_tokens: 10 + tokens };
const wholeChat = JSON.stringify({
  id: 'chatcmpl-cheap',
  object: 'chat.completion',
  created: 1,
  model: 'cheap',
  choices: [{ index: 0, message: { role: 'assistant', content: 'hello' }, finish_reason: 'stop' }],
  usage,
});

const writeChunk = (fields: object): string =>
  `data: ${JSON.stringify({ id: 'chatcmpl-cheap', object: 'chat.completion.chunk', created: 1, model: 'cheap', ...fields })}\n\n`;
const delta = writeChunk({ choices: [{ index: 0, delta: { content: 'word ' }, finish_reason: null }] });
const streamEnd =
  writeChunk({ choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] }) +
  writeChunk({ choices: [], usage }) +
  'data: [DONE]\n\n';

let running = 0;
const waiting: (() => void)[] = [];

/** Calls `respond` after the time that a call with this many inputs takes. */
function schedule(inputs: number, respond: () => void): void {
  if (running === maxConcurrency) {
    waiting.push(() => schedule(inputs, respond));
    return;
  }
  running += 1;
  const end = (): void => {
    running -= 1;
    respond();
    waiting.shift()?.();
  };
  const ms = perCallMs + perInputMs * inputs;
  if (ms === 0) end();
  else setTimeout(end, ms);
}

interface Call {
  readonly stream?: boolean;
  readonly input?: string | readonly string[];
  readonly encoding_format?: 'float' | 'base64';
}

function respond(path: string, call: Call, response: ServerResponse): void {
  if (path.endsWith('/embeddings')) {
    const inputs = Array.isArray(call.input) ? call.input.length : 1;
    schedule(inputs, () => sendJson(response, writeVectors(inputs, call.encoding_format ?? 'float')));
  } else if (call.stream === true) {
    response.setHeader('content-type', 'text/event-stream');
    if (perTokenMs === 0) writeDeltas(response, tokens);
    else paceDeltas(response);
  } else {
    sendJson(response, wholeChat);
  }
}

/** Writes as many deltas as the reader takes, and the rest when it takes more. */
function writeDeltas(response: ServerResponse, count: number): void {
  let remaining = count;
  while (remaining > 0) {
    remaining -= 1;
    if (response.write(delta) || remaining === 0) continue;
    response.once('drain', () => writeDeltas(response, remaining));
    return;
  }
  response.end(streamEnd);
}

function paceDeltas(response: ServerResponse): void {
  let remaining = tokens;
  const timer = setInterval(() => {
    response.write(delta);
    remaining -= 1;
    if (remaining > 0) return;
    clearInterval(timer);
    response.end(streamEnd);
  }, perTokenMs);
  response.once('close', () => clearInterval(timer));
}

function writeVectors(inputs: number, format: 'float' | 'base64'): string {
  const data = Array.from(
    { length: inputs },
    (_, index) => `{"object":"embedding","index":${index},"embedding":${vectorOf[format]}}`,
  );
  const counts = JSON.stringify({ prompt_tokens: inputs * 4, total_tokens: inputs * 4 });
  return `{"object":"list","model":"cheap","data":[${data.join(',')}],"usage":${counts}}`;
}

function sendJson(response: ServerResponse, body: string): void {
  response.setHeader('content-type', 'application/json');
  response.end(body);
}

async function readBody(request: IncomingMessage): Promise<Call> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return JSON.parse(Buffer.concat(chunks).toString()) as Call;
}

const server = createServer((request, response) => {
  readBody(request).then(
    (call) => respond(request.url ?? '', call, response),
    () => response.writeHead(400).end(),
  );
});
server.listen(0, '127.0.0.1', () => {
  const { port } = server.address() as AddressInfo;
  console.log(JSON.stringify({ url: `http://127.0.0.1:${port}` }));
});
