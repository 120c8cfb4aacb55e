import { once } from 'node:events';
import { createServer, request as sendHttp, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setImmediate as nextIteration } from 'node:timers/promises';
import test from 'ava';
import { defaultBodyTimes } from '../../../../api/http/bodies/body-pace.ts';
import { readChunks } from '../../../../api/http/bodies/read-chunks.ts';

test('a body ends after its last chunk was processed, even if that takes longer than the end takes to arrive', async (t) => {
  const server = createServer().listen(0, '127.0.0.1');
  t.teardown(() => server.close());
  await once(server, 'listening');
  const sent = sendHttp({ port: (server.address() as AddressInfo).port, method: 'POST' });
  sent.on('error', () => undefined);
  t.teardown(() => sent.destroy());
  sent.end(Buffer.alloc(300_000));
  const [incoming] = (await once(server, 'request')) as [IncomingMessage];
  let started = 0;
  let processed = 0;
  await readChunks(incoming, defaultBodyTimes, {
    isLarge: () => true,
    onChunk: async (chunk) => {
      started += chunk.length;
      t.is(processed, started - chunk.length, 'one chunk at a time');
      for (let i = 0; i < 50; i++) await nextIteration();
      processed += chunk.length;
    },
  });
  t.is(processed, 300_000);
});
