import { once } from 'node:events';
import { createSocket } from 'node:dgram';
import { createServer, type AddressInfo, type Socket } from 'node:net';
import test, { type ExecutionContext } from 'ava';
import { createHostResolver } from '../../../../workers/outbound/resolve-host.ts';
import { createWebhookClient } from '../../../../workers/deliveries/webhooks/webhook-client.ts';
import { attemptLimits, createTestWebhookClient } from '../../../support/webhooks.ts';
import { useHttpsServer } from '../../../support/https-server.ts';

/** Receivers are untrusted: they must not occupy a worker longer, or make it read more, than the limits allow. */

/** Posts to a receiver that writes `start`, then `again` repeatedly, to the raw connection until it is closed. */
async function postTo(
  t: ExecutionContext,
  start: string,
  again: string,
  { everyMs = 0, totalMs = 15_000 } = {},
) {
  let written = 0;
  const server = await useHttpsServer(t, (_request, response) => {
    const socket = response.socket!;
    socket.on('error', () => undefined);
    socket.write(start);
    repeatedly(socket, everyMs, () => {
      written += again.length;
      return socket.write(again);
    });
  });
  const client = createTestWebhookClient(server.port);
  const response = await client.post(
    `https://pictures.test:${server.port}/hook`,
    {},
    '{}',
    attemptLimits(totalMs),
  );
  await server.whenDisconnected();
  return { ...response, written };
}

function repeatedly(socket: Socket, everyMs: number, write: () => boolean): void {
  const timer = setInterval(() => {
    // A flooding receiver writes as fast as the client reads.
    const maxWrites = everyMs === 0 ? 1_000 : 1;
    for (let i = 0; i < maxWrites && !socket.destroyed && write(); i++);
  }, everyMs);
  socket.on('close', () => clearInterval(timer));
}

const ok = 'HTTP/1.1 200 OK\r\n';
const large = 'x'.repeat(65_536);
const broken = 'The server did not respond over https with a valid certificate.';

test('an endless body is not read, and the status before it is still reported', async (t) => {
  const flood = await postTo(t, `${ok}\r\n`, large);
  t.like(flood, { status: 200, error: null });
  t.true(flood.written < 20_000_000, `${flood.written} bytes were accepted`);
  t.like(await postTo(t, `${ok}\r\n`, 'x', { everyMs: 50 }), { status: 200, error: null });
});

test('endless headers are an error, whether they arrive fast or slowly', async (t) => {
  const slow = await postTo(t, ok, 'x-one: more\r\n', { everyMs: 50, totalMs: 500 });
  t.like(slow, { status: null, error: 'There was no response within 0.5 s.' });
  const flood = await postTo(t, ok, `x-large: ${large}\r\n`);
  t.like(flood, { status: null, error: broken });
  t.true(flood.written < 20_000_000, `${flood.written} bytes were accepted`);
});

test('interim responses, an upgrade and non-HTTP data are not a response', async (t) => {
  for (const start of [
    'HTTP/1.1 103 Early Hints\r\n\r\n',
    'HTTP/1.1 100 Continue\r\n\r\n',
    'HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n',
    'SSH-2.0-OpenSSH_9.9\r\n',
  ]) {
    const { status, error } = await postTo(t, start, start, { everyMs: 50, totalMs: 500 });
    t.is(status, null, start);
    t.regex(error!, /^(?:There was no response within|The server did not respond)/, start);
  }
});

test('an attempt ends within its limit if the response arrives byte by byte, if TLS hangs, and if the name server does', async (t) => {
  const slow = await postTo(t, '', 'H', { everyMs: 50, totalMs: 500 });
  // The first bytes are not HTTP, which may be noticed before the limit.
  t.is(slow.status, null);
  const sockets: Socket[] = [];
  const silent = createServer((socket) => sockets.push(socket.on('error', () => undefined)));
  silent.listen(0, '127.0.0.1');
  await once(silent, 'listening');
  const nameServer = createSocket('udp4').bind(0, '127.0.0.1');
  await once(nameServer, 'listening');
  t.teardown(() => {
    for (const socket of sockets) socket.destroy();
    silent.close();
    nameServer.close();
  });
  const { port } = silent.address() as AddressInfo;
  const url = `https://pictures.test:${port}/hook`;
  const noResponse = 'There was no response within 0.5 s.';
  const withoutTls = await createTestWebhookClient(port).post(url, {}, '{}', attemptLimits(500));
  t.is(withoutTls.error, noResponse);
  const resolveHost = createHostResolver({ servers: [`127.0.0.1:${nameServer.address().port}`] });
  const client = createWebhookClient({ resolveHost, ports: new Set([port]) });
  t.is((await client.post(url, {}, '{}', attemptLimits(500))).error, noResponse);
});
