import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { text as readText } from 'node:stream/consumers';
import test, { type ExecutionContext } from 'ava';
import {
  HttpConnections,
  type HandleRequest,
  type HttpConnectionsOptions,
} from '../../../../api/http/connections/http-connections.ts';
import { checkOverLimit } from '../../../../api/http/connections/over-limit-requests.ts';
import { findCollector } from '../../../../shared/platform/runtime/idle-collection.ts';
import { createLogger } from '../../../../shared/platform/runtime/logger.ts';
import { connectionDefaults } from '../../../support/connection-defaults.ts';
import { useRaw } from '../../../support/raw-caller.ts';
import { waitFor } from '../../../support/wait-for.ts';

/** A request whose handler has not responded yet. */
interface HeldRequest {
  readonly path: string;
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
}

interface Rig {
  readonly url: string;
  readonly connections: HttpConnections;
  /** Requests that reached the handler, in order. */
  readonly held: HeldRequest[];
}

async function start(
  t: ExecutionContext,
  options: Partial<HttpConnectionsOptions> = {},
  handle?: HandleRequest,
): Promise<Rig> {
  const held: HeldRequest[] = [];
  const connections = new HttpConnections({
    ...connectionDefaults,
    handle: (request, response) => {
      if (isRejected(request)) {
        response.writeHead(503, { connection: 'close' }).end();
        return;
      }
      held.push({ path: request.url ?? '', request, response });
      handle?.(request, response);
    },
    log: createLogger('test', 'silent'),
    ...options,
  });
  const url = await connections.listen('127.0.0.1', 0);
  t.teardown(async () => {
    const stopped = connections.stop();
    for (const { response } of held) response.destroy();
    await stopped;
  });
  return { url, connections, held };
}

function isRejected(request: IncomingMessage): boolean {
  try {
    checkOverLimit(request);
    return false;
  } catch {
    return true;
  }
}

const collectGarbage = findCollector();

const get = (path: string): string => `GET ${path} HTTP/1.1\r\nhost: a\r\n\r\n`;

async function waitForHeld(held: readonly HeldRequest[], count: number): Promise<HeldRequest> {
  await waitFor(`request ${count}`, () => held.length >= count);
  return held[count - 1]!;
}

test('requests on one connection are handled one at a time, and answered in order', async (t) => {
  const { url, held } = await start(t);
  const caller = await useRaw(t, url);
  caller.socket.write(get('/1') + get('/2') + get('/3'));
  for (const count of [1, 2, 3]) {
    const { path, response } = await waitForHeld(held, count);
    t.is(path, `/${count}`);
    await new Promise((resolve) => setImmediate(resolve));
    t.is(held.length, count, 'the next request waits');
    response.end(`answer ${count}`);
    await caller.until(`answer ${count}`);
  }
  caller.socket.write(get('/4'));
  (await waitForHeld(held, 4)).response.end('answer 4');
  await caller.until('answer 4');
});

test('while many pipelined requests are waiting, no more data is read from their connection', async (t) => {
  const { url, held } = await start(t);
  const caller = await useRaw(t, url);
  const count = 20_000;
  caller.socket.write(get('/same').repeat(count));
  const { response } = await waitForHeld(held, 1);
  const { bytesRead } = held[0]!.request.socket;
  // Once another caller has been served, everything readable has been read.
  const other = await useRaw(t, url);
  other.socket.write(get('/other'));
  (await waitForHeld(held, 2)).response.end('other');
  await other.until('other');
  t.is(held[0]!.request.socket.bytesRead, bytesRead);
  t.true(bytesRead <= 2 * 64 * 1024, `${bytesRead}`);
  held.length = 0;
  response.end('x');
  const timer = setInterval(() => {
    for (const { response } of held.splice(0)) response.end('x');
  }, 1);
  t.teardown(() => clearInterval(timer));
  await waitFor('all responses', () => caller.seen().split('HTTP/1.1 200').length > 300);
});

test('a pipelined request is not started if its connection has closed', async (t) => {
  const { url, held } = await start(t);
  const caller = await useRaw(t, url);
  caller.socket.write(get('/1') + get('/2') + get('/3'));
  const { request, response } = await waitForHeld(held, 1);
  const closed = new Promise((resolve) => response.once('close', resolve));
  request.socket.destroy();
  await closed;
  await new Promise((resolve) => setImmediate(resolve));
  t.is(held.length, 1);
});

test('an idle keep-alive connection does not keep its last request in memory', async (t) => {
  const { url, held } = await start(t);
  const caller = await useRaw(t, url);
  caller.socket.write(get('/1'));
  const respond = async (): Promise<WeakRef<IncomingMessage>> => {
    const { request, response } = await waitForHeld(held, 1);
    response.end('answer');
    held.length = 0;
    return new WeakRef(request);
  };
  const last = await respond();
  await caller.until('answer');
  await waitFor('the request to be garbage-collected', () => {
    collectGarbage();
    return last.deref() === undefined;
  });
  t.false(caller.socket.destroyed);
});

test('bodies of pipelined requests arrive whole, even with Expect: 100-continue', async (t) => {
  const { url } = await start(t, {}, (request, response) => {
    if (request.headers.expect !== undefined) response.writeContinue();
    void readText(request).then((body) =>
      setTimeout(() => response.end(`<${request.url} ${body.length}>`), 5),
    );
  });
  const caller = await useRaw(t, url);
  const post = (path: string, body: string, more = ''): string =>
    `POST ${path} HTTP/1.1\r\nhost: a\r\n${more}content-length: ${body.length}\r\n\r\n${body}`;
  const large = 'x'.repeat(300_000);
  caller.socket.write(
    post('/1', 'abc') + post('/2', large) + get('/3') + post('/4', large, 'expect: 100-continue\r\n'),
  );
  caller.socket.write(get('/5'));
  const output = await caller.until('</5 0>');
  t.deepEqual(output.match(/<[^>]*>/g), ['</1 3>', '</2 300000>', '</3 0>', '</4 300000>', '</5 0>']);
  t.regex(output, /<\/3 0>.*100 Continue.*<\/4/s);
});

test('requests pipelined after one that closes the connection are not started', async (t) => {
  const { url, held } = await start(t);
  const caller = await useRaw(t, url);
  caller.socket.write(get('/1') + get('/2'));
  const { response } = await waitForHeld(held, 1);
  response.setHeader('connection', 'close');
  response.end('last');
  t.regex(await caller.closed, /last$/);
  t.is(held.length, 1);
});

test('headers that do not arrive in time are a 408, and the connection is closed', async (t) => {
  const { url, held } = await start(t, { headersTimeoutMs: 400 });
  const [silent, half] = await Promise.all([useRaw(t, url), useRaw(t, url)]);
  half.socket.write('GET / HTTP/1.1\r\nhost: a\r\n');
  for (const caller of [silent, half]) t.regex(await caller.closed, /^HTTP\/1.1 408 /);
  t.is(held.length, 0);
});

test('after a response, a caller may continue to send an unread body for a limited time before its connection is closed', async (t) => {
  const { url } = await start(t, { unwantedBodyMs: 3_000 }, (_, response) => response.end('answer'));
  const head = 'GET / HTTP/1.1\r\nhost: a\r\ncontent-length: 3\r\n\r\n';
  const [never, quick] = await Promise.all([useRaw(t, url), useRaw(t, url)]);
  never.socket.write(head);
  quick.socket.write(head);
  await quick.until('answer');
  quick.socket.write('abc');
  await never.closed;
  quick.socket.write(get('/again'));
  await waitFor('a second response', () => quick.seen().split('answer').length === 3);
  t.pass();
});

test('stopping closes idle connections after the grace time, and others after their responses, which carry connection: close', async (t) => {
  const { url, connections, held } = await start(t);
  const [idle, half, waiting, streaming] = await Promise.all([1, 2, 3, 4].map(() => useRaw(t, url)));
  idle!.socket.write(get('/idle'));
  (await waitForHeld(held, 1)).response.end('idle');
  await idle!.until('idle');
  half!.socket.write('GET / HTTP/1.1\r\nhost');
  waiting!.socket.write(get('/waiting') + get('/queued'));
  const { response: later } = await waitForHeld(held, 2);
  streaming!.socket.write(get('/streaming') + get('/queued'));
  const { response: stream } = await waitForHeld(held, 3);
  stream.write('begun');
  await streaming!.until('begun');
  const stopped = connections.stop();
  await Promise.all([idle!.closed, half!.closed]);
  later.end('later');
  t.regex(await waiting!.closed, /connection: close.*later/is);
  stream.end('ended');
  t.regex(await streaming!.closed, /ended\r\n0\r\n\r\n$/);
  await stopped;
  t.is(held.length, 3);
});

const limit = { max: 8, maxPerNetwork: null };

test('when connections run out, idle connections of the address with the most connections are closed', async (t) => {
  const { url, held } = await start(t, { limit }, (_, response) => response.end('answer'));
  const silent = [];
  for (let i = 0; i < 20; i++) silent.push(await useRaw(t, url));
  const caller = await useRaw(t, url, { from: '127.0.0.2' });
  caller.socket.write(get('/'));
  await caller.until('answer');
  // This caller is idle now, and its address has fewer connections than the other one.
  for (let i = 0; i < 20; i++) silent.push(await useRaw(t, url));
  caller.socket.write(get('/'));
  await waitFor('the second response of the caller', () => caller.seen().split('answer').length === 3);
  const same = await useRaw(t, url);
  same.socket.write(get('/'));
  await same.until('answer');
  t.is(held.length, 3);
});

test('a connection with a request in flight is never closed to make room for a new one; the new connection gets a 503', async (t) => {
  const { url, held } = await start(t, { limit: { max: 2, maxPerNetwork: 2 } });
  const busy = await Promise.all([useRaw(t, url), useRaw(t, url)]);
  for (const { socket } of busy) socket.write(get('/busy'));
  await waitForHeld(held, 2);
  const rejectedClient = await useRaw(t, url, { from: '127.0.0.2' });
  rejectedClient.socket.write(get('/refused'));
  t.regex(await rejectedClient.closed, /^HTTP\/1.1 503 /);
  const silent = await useRaw(t, url, { from: '127.0.0.2' });
  t.is(await silent.closed, '', 'a new connection that sends no request is closed');
  for (const { response } of held) response.end('answer');
  await Promise.all(busy.map((caller) => caller.until('answer')));
  const later = await useRaw(t, url, { from: '127.0.0.2' });
  later.socket.write(get('/later'));
  (await waitForHeld(held, 3)).response.end('later');
  await later.until('later');
});

test('one address may use at most half of the connections not held by others, or its configured maximum', async (t) => {
  for (const { maxPerNetwork, expectedMax } of [
    { maxPerNetwork: null, expectedMax: 4 },
    { maxPerNetwork: 6, expectedMax: 6 },
  ]) {
    const { url, held } = await start(t, { limit: { max: 8, maxPerNetwork } });
    const callers = [];
    for (let i = 0; i < 8; i++) {
      const caller = await useRaw(t, url);
      caller.socket.write(get('/'));
      await waitForHeld(held, Math.min(i + 1, expectedMax));
      callers.push(caller);
    }
    const rejections = await Promise.all(callers.slice(expectedMax).map(({ closed }) => closed));
    t.true(rejections.every((response) => response.startsWith('HTTP/1.1 503 ')));
    t.is(held.length, expectedMax);
    const other = await useRaw(t, url, { from: '127.0.0.2' });
    other.socket.write(get('/'));
    await waitForHeld(held, expectedMax + 1);
  }
});

test('behind a proxy, the limit per address does not apply, and all connections share the total limit', async (t) => {
  const { url, held } = await start(t, { limit: { max: 8, maxPerNetwork: 2 }, isProxied: true });
  const callers = await Promise.all(Array.from({ length: 8 }, () => useRaw(t, url)));
  for (const { socket } of callers) socket.write(get('/'));
  await waitForHeld(held, 8);
  t.pass();
});

test('while stopping, a request that arrives on an idle connection, or after a response that had begun, is answered and closes it', async (t) => {
  const { url, connections, held } = await start(t, { idleGraceMs: 60_000 });
  const [idle, unused, streaming] = await Promise.all([1, 2, 3].map(() => useRaw(t, url)));
  idle!.socket.write(get('/first'));
  (await waitForHeld(held, 1)).response.end('first');
  await idle!.until('first');
  streaming!.socket.write(get('/stream'));
  const { response: stream } = await waitForHeld(held, 2);
  stream.write('begun');
  await streaming!.until('begun');
  const stopped = connections.stop();
  idle!.socket.write(get('/second') + get('/never'));
  (await waitForHeld(held, 3)).response.end('second');
  unused!.socket.write(get('/third'));
  (await waitForHeld(held, 4)).response.end('third');
  stream.end('ended');
  await streaming!.until('ended');
  streaming!.socket.write(get('/fourth'));
  (await waitForHeld(held, 5)).response.end('fourth');
  t.regex(await idle!.closed, /first[^]*connection: close[^]*second$/i);
  t.regex(await unused!.closed, /connection: close[^]*third$/i);
  t.regex(await streaming!.closed, /ended[^]*connection: close[^]*fourth$/i);
  await stopped;
  t.is(held.length, 5);
});

test('stopping does not interrupt a finished response that is still being sent', async (t) => {
  const { url, connections, held } = await start(t);
  const caller = await useRaw(t, url, { isPaused: true });
  caller.socket.write(get('/large'));
  const { response } = await waitForHeld(held, 1);
  const bytes = 24 * 1024 * 1024;
  response.end(Buffer.alloc(bytes, 'a'));
  const stopped = connections.stop();
  caller.socket.resume();
  const output = await caller.closed;
  t.is(output.length - output.indexOf('\r\n\r\n') - 4, bytes);
  await stopped;
});

test('writing to a response that has ended raises an error on that response only', async (t) => {
  const { url, held } = await start(t);
  const caller = await useRaw(t, url, { isPaused: true });
  caller.socket.write(get('/1'));
  const { response } = await waitForHeld(held, 1);
  response.end(Buffer.alloc(24 * 1024 * 1024, 'a'));
  const failed = new Promise((resolve) => response.once('error', resolve));
  response.write('too late');
  t.truthy(await failed);
  t.is(response.listenerCount('error'), 1);
});

test('a disconnect is noticed even if a pipelined body or a CONNECT was received before it', async (t) => {
  const { url, held } = await start(t);
  // Sent in parts, because Node stops reading when one part exceeds its high-water mark.
  const part = 'x'.repeat(20_000);
  for (const pipelined of [
    [`POST /2 HTTP/1.1\r\nhost: a\r\ncontent-length: 60000\r\n\r\n`, part, part, part],
    ['CONNECT a:1 HTTP/1.1\r\nhost: a\r\n\r\n', 'more'],
  ]) {
    const caller = await useRaw(t, url);
    caller.socket.write(get('/1'));
    const { request, response } = await waitForHeld(held, held.length + 1);
    const closed = new Promise((resolve) => response.once('close', resolve));
    for (const bytes of pipelined) {
      const { bytesRead } = request.socket;
      caller.socket.write(bytes);
      await waitFor('the bytes to be read', () => request.socket.bytesRead > bytesRead);
    }
    caller.socket.destroy();
    await closed;
  }
  t.is(held.length, 2);
});

test('a caller does not time out while the server is not reading from its connection', async (t) => {
  const headersTimeoutMs = 200;
  const { url, held } = await start(t, { headersTimeoutMs });
  const caller = await useRaw(t, url);
  const count = 2_500;
  caller.socket.write(get('/same').repeat(count));
  await waitForHeld(held, 1);
  // Once these callers have timed out, the timeout of the head that Node has begun to read has expired too.
  const late = await useRaw(t, url);
  t.regex(await late.closed, /^HTTP\/1.1 408 /);
  const another = await useRaw(t, url);
  t.regex(await another.closed, /^HTTP\/1.1 408 /);
  const timer = setInterval(() => {
    for (const { response } of held.splice(0)) response.end('x');
  }, 1);
  t.teardown(() => clearInterval(timer));
  let responses = 0;
  caller.socket.on('data', (text: string) => {
    responses += text.split('HTTP/1.1 200').length - 1;
  });
  await Promise.race([waitFor('all responses', () => responses >= count), caller.closed]);
  t.false(caller.seen().includes(' 408 '));
  t.true(responses >= count - 1, `${responses}`);
});

test('a head that is never completed is a 408, even if the server did not read its connection for a while', async (t) => {
  const { url, held } = await start(t, { headersTimeoutMs: 200 });
  const caller = await useRaw(t, url);
  const count = 100;
  caller.socket.write(`${get('/same').repeat(count)}GET /half HTTP/1.1\r\nhost`);
  await waitForHeld(held, 1);
  for (let i = 0; i < 2; i += 1) {
    const late = await useRaw(t, url);
    t.regex(await late.closed, /^HTTP\/1.1 408 /);
  }
  const timer = setInterval(() => {
    for (const { response } of held.splice(0)) response.end('x');
  }, 1);
  t.teardown(() => clearInterval(timer));
  // Sending a byte now and then does not keep a connection open.
  const trickle = setInterval(() => caller.socket.write('a'), 20);
  t.teardown(() => clearInterval(trickle));
  const statuses = (await caller.closed).match(/(?<=HTTP\/1.1 )\d+/g);
  t.deepEqual(statuses, [...Array.from({ length: count }, () => '200'), '408']);
});

test('rejected connections and failed accepts are logged once each', async (t) => {
  const warned: string[] = [];
  const log = {
    ...createLogger('test', 'silent'),
    warn: (_: object, message: string) => warned.push(message),
  };
  const { url, held } = await start(t, {
    limit: { max: 1, maxPerNetwork: null },
    log: log as unknown as HttpConnectionsOptions['log'],
  });
  const caller = await useRaw(t, url);
  caller.socket.write(get('/'));
  const { request } = await waitForHeld(held, 1);
  const rejectedClients = await Promise.all([useRaw(t, url), useRaw(t, url)]);
  await Promise.all(rejectedClients.map(({ closed }) => closed));
  const { server } = request.socket as unknown as { server: Server };
  for (let i = 0; i < 2; i += 1) server.emit('error', new Error('EMFILE'));
  t.deepEqual(warned, ['connection limit reached', 'connection not accepted']);
});
