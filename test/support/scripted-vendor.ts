import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

/** What the vendor says to a body: an object is sent as JSON, texts are sent as the events of a stream. */
export type Script = (body: Readonly<Record<string, unknown>>, path: string) => object | readonly string[];

export interface ScriptedVendor {
  /** Without a path. */
  readonly url: string;
  close(): Promise<void>;
}

/** A vendor that answers word for word what a test wrote: for usage that no simulated model would report. */
export async function startScriptedVendor(script: Script): Promise<ScriptedVendor> {
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const body = JSON.parse(Buffer.concat(chunks).toString('utf8')) as Record<string, unknown>;
      const answer = script(body, request.url ?? '/');
      if (!Array.isArray(answer)) {
        response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(answer));
        return;
      }
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      for (const event of answer) response.write(`data: ${String(event)}\n\n`);
      response.end();
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

/** A chat answer of one word with this usage. */
export function answerWithUsage(usage: object): object {
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
