import { once } from 'node:events';
import test, { type ExecutionContext } from 'ava';
import mongoose from 'mongoose';
import { embeddedUser } from '../../../scripts/embedded/credentials.ts';
import { openSockets } from '../../support/hostile-sockets.ts';
import { MongoWireClient } from '../../support/mongo-wire-client.ts';
import { useRaw } from '../../support/raw-caller.ts';
import { startMongo } from './mongo/mongo-fixture.ts';
import { signRequest, startTestServer } from './s3/support.ts';

/** How both embedded servers treat connections that have not yet authenticated. */

const password = 'test-mongo-password';
const never = 3_600_000;
/** Longer than a busy machine delays a client that has something to send. */
const idleMs = 3_000;

async function openClient(t: ExecutionContext, url: string): Promise<MongoWireClient> {
  const client = await MongoWireClient.connect(url);
  t.teardown(() => client.socket.destroy());
  return client;
}

test('MongoDB: a silent connection is closed, but an authenticated one may be silent', async (t) => {
  const { url } = await startMongo(t, { password, unauthenticatedIdleMs: idleMs });
  const known = await openClient(t, url);
  t.is((await known.authenticate({ username: embeddedUser, password })).ok, 1);
  const silent = await useRaw(t, url);
  const half = await useRaw(t, url);
  half.socket.write(Buffer.from([100, 0, 0, 0, 1]));
  await Promise.all([silent.closed, half.closed]);
  t.is((await known.command({ ping: 1 })).ok, 1);
});

test('MongoDB: a connection that sends single bytes is closed, but complete messages keep it open', async (t) => {
  const { url } = await startMongo(t, { unauthenticatedIdleMs: idleMs });
  const monitor = await openClient(t, url);
  const slow = await useRaw(t, url);
  slow.socket.write(Buffer.from([255, 0, 0, 0]));
  const dripping = setInterval(() => slow.socket.destroyed || slow.socket.write('\0'), 20);
  t.teardown(() => clearInterval(dripping));
  const monitoring = setInterval(() => void monitor.command({ hello: 1 }).catch(() => undefined), 20);
  t.teardown(() => clearInterval(monitoring));
  await slow.closed;
  t.is((await monitor.command({ ping: 1 })).ok, 1);
});

test('MongoDB: above the connection limit, the connection that has been silent longest is closed, not the newest one', async (t) => {
  const { url } = await startMongo(t, { maxUnauthenticated: 2, unauthenticatedIdleMs: never, password });
  const first = await openClient(t, url);
  const second = await openClient(t, url);
  t.is((await second.command({ ping: 1 })).ok, 1);
  t.is(
    (await first.command({ ping: 1 })).ok,
    1,
    'the first connection has now sent data later than the second',
  );
  const closed = once(second.socket, 'close');
  const third = await openClient(t, url);
  await closed;
  t.is((await first.command({ ping: 1 })).ok, 1);
  t.is((await third.authenticate({ username: embeddedUser, password })).ok, 1);
  // Now authenticated, it no longer counts towards the limit.
  const fourth = await openClient(t, url);
  for (const client of [first, third, fourth]) t.is((await client.command({ ping: 1 })).ok, 1);
});

test('MongoDB: during a flood of connections the driver still finds the server, although its monitor never authenticates', async (t) => {
  const { url } = await startMongo(t, { maxUnauthenticated: 8, password });
  const client = await mongoose.mongo.MongoClient.connect(url);
  t.teardown(() => client.close());
  const things = client.db('test').collection('things');
  for (let wave = 0; wave < 5; wave += 1) {
    await openSockets(url, 20);
    await things.insertOne({ wave });
  }
  t.is(await things.countDocuments(), 5);
});

test('MongoDB: unauthenticated connections do not delay a stop', async (t) => {
  const server = await startMongo(t, { unauthenticatedIdleMs: never });
  const silent = await useRaw(t, server.url);
  await server.close();
  await silent.closed;
  t.pass();
});

test('S3: a connection without a signed request is closed, but a connection that has sent one may be silent', async (t) => {
  const { endpoint } = await startTestServer(t, { unauthenticatedIdleMs: idleMs });
  const { socket: known } = await useRaw(t, endpoint);
  const target = '/pictures?list-type=2';
  const { headers } = signRequest(endpoint, { target });
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  const send = async (): Promise<string> => {
    known.write(`GET ${target} HTTP/1.1\r\n${lines.join('')}\r\n`);
    return String((await once(known, 'data'))[0]).split('\r\n', 1)[0]!;
  };
  t.is(await send(), 'HTTP/1.1 200 OK');
  const silent = await useRaw(t, endpoint);
  const half = await useRaw(t, endpoint);
  half.socket.write('GET / HTTP/1.1\r\nHost: s3\r\n');
  await Promise.all([silent.closed, half.closed]);
  t.is(await send(), 'HTTP/1.1 200 OK');
});

test('S3: a rejected request gets a response, and its connection is closed', async (t) => {
  const { endpoint } = await startTestServer(t);
  const { socket, closed } = await useRaw(t, endpoint);
  socket.write('GET /pictures HTTP/1.1\r\nHost: s3\r\n\r\n');
  const answer = await closed;
  t.regex(answer, /^HTTP\/1\.1 403 /);
  t.regex(answer, /\r\nconnection: close\r\n/i);
  t.regex(answer, /<Code>AccessDenied<\/Code>.*<\/Error>$/s);
});

test('S3: unsigned requests do not delay a stop', async (t) => {
  const server = await startTestServer(t, { closeGraceMs: never, unauthenticatedIdleMs: never });
  const silent = await useRaw(t, server.endpoint);
  const half = await useRaw(t, server.endpoint);
  half.socket.write('GET / HTTP/1.1\r\nHost: s3\r\n');
  await server.close();
  await Promise.all([silent.closed, half.closed]);
  t.pass();
});

test('S3: a signed request that does not finish is cut off by a stop', async (t) => {
  const server = await startTestServer(t, { closeGraceMs: 100, unauthenticatedIdleMs: never });
  const { socket, closed } = await useRaw(t, server.endpoint);
  const target = '/pictures/large';
  const { headers } = signRequest(server.endpoint, {
    method: 'PUT',
    target,
    payloadHash: 'UNSIGNED-PAYLOAD',
  });
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.write(
    `PUT ${target} HTTP/1.1\r\n${lines.join('')}Content-Length: 1000\r\nExpect: 100-continue\r\n\r\n`,
  );
  await once(socket, 'data'); // This is 100 Continue, so the request is now in flight.
  await server.close();
  await closed;
  t.pass();
});
