import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** One call to the vendor. Lets a script wait until the client of the vendor disconnects. */
export interface ScriptedCall {
  /** Resolves if the connection is closed before the response has ended. */
  readonly cut: Promise<void>;
  readonly headers: IncomingHttpHeaders;
}

type Events = readonly string[] | AsyncIterable<string>;

/** A response with a status other than 200. */
export class ScriptedRefusal {
  readonly status: number;
  readonly body: object;
  readonly headers: Readonly<Record<string, string>>;

  constructor(status: number, body: object, headers: Readonly<Record<string, string>> = {}) {
    this.status = status;
    this.body = body;
    this.headers = headers;
  }
}

/**
 * The vendor's response to a body: an object is sent as JSON; strings are sent as the events of a stream, each as soon
 * as it is available.
 */
export type Script = (
  body: Readonly<Record<string, unknown>>,
  path: string,
  call: ScriptedCall,
) => object | Events | Promise<object>;

/** A complete, unstreamed chat response. */
export const unstreamedChat = {
  id: 'x',
  object: 'chat.completion',
  created: 1,
  model: 'chat',
  choices: [{ index: 0, message: { role: 'assistant', content: 'hi' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
};

export interface ScriptedVendor {
  /** Base URL, without a path. */
  readonly url: string;
  close(): Promise<void>;
}

/** A vendor that sends exactly what a test specifies, such as token usage that the simulated models never report. */
export async function startScriptedVendor(script: Script): Promise<ScriptedVendor> {
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    const cut = new Promise<void>((resolve) => {
      response.once('close', () => {
        if (!response.writableFinished) resolve();
      });
    });
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const body = JSON.parse(Buffer.concat(chunks).toString('utf8')) as Record<string, unknown>;
      // A script that fails aborts its response.
      respond(response, script(body, request.url ?? '/', { cut, headers: request.headers })).catch(() =>
        response.destroy(),
      );
    });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    async close() {
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}

async function respond(response: ServerResponse, scripted: ReturnType<Script>): Promise<void> {
  const content = await scripted;
  if (content instanceof ScriptedRefusal) {
    const headers = { 'content-type': 'application/json', ...content.headers };
    response.writeHead(content.status, headers).end(JSON.stringify(content.body));
    return;
  }
  if (!isEvents(content)) {
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(content));
    return;
  }
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  response.flushHeaders();
  for await (const event of content) response.write(`data: ${event}\n\n`);
  response.end();
}

const isEvents = (content: object): content is Events =>
  Array.isArray(content) || Symbol.asyncIterator in content;

/** A one-word chat response with this usage. */
export function chatWithUsage(usage: object): object {
  const message = { role: 'assistant', content: 'Yes' };
  return {
    id: 'chatcmpl-scripted',
    object: 'chat.completion',
    created: 1_700_000_000,
    model: 'scripted',
    choices: [{ index: 0, message, finish_reason: 'stop', logprobs: null }],
    usage,
  };
}
