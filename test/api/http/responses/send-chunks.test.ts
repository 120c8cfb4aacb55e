import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import { connect, type AddressInfo } from 'node:net';
import test, { type ExecutionContext } from 'ava';
import { sendChunks } from '../../../../api/http/responses/send-chunks.ts';
import { nextWorkTurn } from '../../../../shared/fairness/work-turns.ts';
import type { ChunkedBody } from '../../../../shared/responses/chunked-body.ts';

const nextTurn = () => nextWorkTurn('account');

const chunkBytes = 200_000;

/** Chunks with distinct bytes, `count` of them. */
function makeChunks(count: number): ChunkedBody & { readonly written: number } {
  let written = 0;
  return {
    maxChunkBytes: chunkBytes,
    get written() {
      return written;
    },
    write(target) {
      if (written === count) return 0;
      target.fill(written % 251, 0, chunkBytes);
      written += 1;
      return chunkBytes;
    },
  };
}

async function serve(t: ExecutionContext, handle: (response: ServerResponse) => void): Promise<number> {
  const server = createServer((_, response) => handle(response)).listen(0, '127.0.0.1');
  t.teardown(() => {
    server.close();
    server.closeAllConnections();
  });
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

test('bodies sent simultaneously to readers of any speed arrive unchanged', async (t) => {
  const count = 40;
  const port = await serve(t, (response) => void sendChunks(response, makeChunks(count), nextTurn));
  const read = async (isSlow: boolean): Promise<Buffer> => {
    const { body } = await fetch(`http://127.0.0.1:${port}`);
    const chunks: Uint8Array[] = [];
    for await (const chunk of body!) {
      chunks.push(chunk as Uint8Array);
      if (isSlow) await new Promise((resolve) => setImmediate(resolve));
    }
    return Buffer.concat(chunks);
  };
  const expected = Buffer.concat(Array.from({ length: count }, (_, i) => Buffer.alloc(chunkBytes, i)));
  const bodies = await Promise.all([false, true, true, false].map(read));
  t.true(bodies.every((body) => body.equals(expected)));
});

test('if the reader disconnects, no further chunks are generated, and `sendChunks` rejects', async (t) => {
  const body = makeChunks(Infinity);
  let sent: Promise<void> | null = null;
  const port = await serve(t, (response) => {
    sent = sendChunks(response, body, nextTurn);
  });
  const reader = connect(port, '127.0.0.1');
  reader.write('GET / HTTP/1.1\r\nhost: reader\r\n\r\n');
  await once(reader, 'readable');
  reader.destroy();
  await t.throwsAsync(sent!);
  const { written } = body;
  await new Promise((resolve) => setImmediate(resolve));
  t.is(body.written, written);
});

test('a body of known length ends with its last chunk, without waiting for another event-loop turn', async (t) => {
  const chunks = makeChunks(3);
  let turns = 0;
  const nextTurn = async (): Promise<void> => {
    turns += 1;
    // The wait after the last chunk never ends.
    if (turns === 3) await new Promise(() => undefined);
  };
  const sent: Promise<void>[] = [];
  const port = await serve(t, (response) => {
    response.setHeader('content-length', 3 * chunkBytes);
    const body = {
      maxChunkBytes: chunkBytes,
      byteLength: 3 * chunkBytes,
      write: (target: Buffer) => chunks.write(target),
    };
    sent.push(sendChunks(response, body, nextTurn));
  });
  const response = await fetch(`http://127.0.0.1:${port}`);
  t.is((await response.arrayBuffer()).byteLength, 3 * chunkBytes);
  await Promise.all(sent);
  t.is(turns, 2);
});
