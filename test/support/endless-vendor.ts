import { once } from 'node:events';
import { text as readText } from 'node:stream/consumers';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface EndlessVendor {
  /** Base URL, without a path. */
  readonly url: string;
  /** Resolves when the vendor cannot send more of the response, because the gateway does not read it. */
  readonly blocked: Promise<void>;
  /** Resolves when the gateway has ended the call. */
  readonly ended: Promise<void>;
  close(): Promise<void>;
}

const pieceBytes = 16 * 1024;
/** Slow enough to leave CPU time for the gateway, which runs in the same process. */
const pieceMs = 2;
/** A connection that accepts nothing for this long is not being read at the other end. */
const blockedMs = 500;

/**
 * A chat vendor that sends an endless response, as fast as the gateway reads it. The model `short` responds with one
 * word.
 */
export async function startEndlessVendor(): Promise<EndlessVendor> {
  const blocked = createSignal<void>();
  const ended = createSignal<void>();
  const server = createServer((request, response) => {
    const body = readText(request);
    let wake = (): void => undefined;
    response.on('drain', () => wake());
    response.on('close', () => {
      ended.resolve();
      wake();
    });
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    const choices = [{ index: 0, delta: { content: ' cat'.repeat(pieceBytes / 4) }, finish_reason: null }];
    const event = `data: ${JSON.stringify({ id: 'x', created: 1, model: 'm', choices })}\n\n`;
    void (async () => {
      if ((await body).includes('"model":"short"')) {
        response.end(`data: ${JSON.stringify(shortChunk)}\n\ndata: [DONE]\n\n`);
        return;
      }
      while (!response.destroyed) {
        const isAccepted = response.write(event);
        const timer = isAccepted ? undefined : setTimeout(() => blocked.resolve(), blockedMs);
        await new Promise<void>((resolve) => {
          wake = resolve;
          if (isAccepted) setTimeout(resolve, pieceMs);
        });
        clearTimeout(timer);
      }
    })();
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    blocked: blocked.promise,
    ended: ended.promise,
    async close() {
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}

const shortChunk = {
  id: 'x',
  created: 1,
  model: 'm',
  choices: [{ index: 0, delta: { content: 'hello' }, finish_reason: 'stop' }],
};

function createSignal<T>(): { readonly promise: Promise<T>; readonly resolve: (value: T) => void } {
  let resolve!: (value: T) => void;
  const promise = new Promise<T>((done) => {
    resolve = done;
  });
  return { promise, resolve };
}
