import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { connect as connectSocket } from 'node:net';
import { Binary, Long } from 'bson';
import type { ExecutionContext } from 'ava';
import test from 'ava';
import { MongoWireClient } from '../../../support/mongo-wire-client.ts';
import { makeTempDir, startMongo } from './mongo-fixture.ts';

/** A client with the server's password. */
async function connectRaw(t: ExecutionContext, url: string): Promise<MongoWireClient> {
  const client = await MongoWireClient.connect(url);
  t.teardown(() => client.socket.destroy());
  const { username, password } = new URL(url);
  const reply = await client.authenticate({ username, password });
  t.is(reply.ok, 1);
  return client;
}

test("a driver's first hello, sent in the legacy message format, gets a response in the same format", async (t) => {
  const client = await connectRaw(t, (await startMongo(t)).url);
  const hello = await client.legacyHello();
  t.true(hello.helloOk);
  t.true(hello.maxWireVersion >= 21);
});

test('a message may arrive in pieces, and its documents may be in a separate section', async (t) => {
  const client = await connectRaw(t, (await startMongo(t)).url);
  const sequence: [string, object[]] = ['documents', [{ _id: 1 }, { a: 1, _id: 2 }]];
  const reply = await client.command({ insert: 'c' }, { sequence, chunkBytes: 7 });
  t.like(reply, { n: 2, ok: 1 });
  const { cursor } = await client.command({ find: 'c', sort: { _id: 1 } });
  t.deepEqual(cursor.firstBatch, [{ _id: 1 }, { _id: 2, a: 1 }]);
  t.deepEqual(Object.keys(cursor.firstBatch[1]), ['_id', 'a'], '_id comes first');
});

test('an invalid message closes only its own connection', async (t) => {
  const { url } = await startMongo(t);
  const client = await connectRaw(t, url);
  const noise = connectSocket(Number(new URL(url).port), '127.0.0.1');
  noise.write('GET / HTTP/1.1\r\n\r\n');
  await once(noise, 'close');
  t.is((await client.command({ ping: 1 })).ok, 1);
});

test('a retried write gets the same response and is not repeated, even after a restart', async (t) => {
  const dir = await makeTempDir(t);
  const lsid = { id: new Binary(randomBytes(16), 4) };
  const increment = (txnNumber: number) => ({
    findAndModify: 'c',
    query: { _id: 1 },
    update: { $inc: { n: 1 } },
    new: true,
    lsid,
    txnNumber: Long.fromNumber(txnNumber),
  });
  const first = await startMongo(t, { dir });
  const client = await connectRaw(t, first.url);
  await client.command({ insert: 'c', documents: [{ _id: 1 }] });
  const answer = await client.command(increment(1));
  t.deepEqual(answer.value, { _id: 1, n: 1 });
  t.deepEqual(await client.command(increment(1)), answer);
  t.is((await client.command(increment(2))).value.n, 2);
  t.is((await client.command(increment(3))).value.n, 3);
  t.is((await client.command(increment(1))).code, 225);
  await first.close();

  const second = await startMongo(t, { dir });
  const again = await connectRaw(t, second.url);
  t.is((await again.command(increment(3))).value.n, 3);
  const { cursor } = await again.command({ find: 'c' });
  t.deepEqual(cursor.firstBatch, [{ _id: 1, n: 3 }]);
});

test('a field named like a built-in JavaScript property only affects the document', async (t) => {
  const client = await connectRaw(t, (await startMongo(t)).url);
  await client.command({ insert: 'c', documents: [{ _id: 1 }] });
  const update = { q: { _id: 1 }, u: { $set: { '__proto__.polluted': 1 } } };
  t.is((await client.command({ update: 'c', updates: [update] })).writeErrors.length, 1);
  t.is(({} as Record<string, unknown>).polluted, undefined);
  const { cursor } = await client.command({ find: 'c', filter: { constructor: { $exists: true } } });
  t.deepEqual(cursor.firstBatch, []);
});

test('serverStatus counts commands and connections', async (t) => {
  const client = await connectRaw(t, (await startMongo(t)).url);
  await client.command({ insert: 'c', documents: [{}, {}] });
  const { opcounters, connections, uptime } = await client.command({ serverStatus: 1 });
  t.is(opcounters.insert, 2);
  t.is(connections.current, 1);
  t.true(uptime > 0);
});

test('a document is rejected if its field order would change in JavaScript, otherwise it is stored', async (t) => {
  const client = await connectRaw(t, (await startMongo(t)).url);
  const insert = (document: Map<string, unknown>) =>
    client.command({ insert: 'c' }, { sequence: ['documents', [document]] });
  const moved = await insert(
    new Map<string, unknown>([
      ['_id', 1],
      ['7', 2],
    ]),
  );
  t.regex(moved.writeErrors[0].errmsg, /not supported by the embedded MongoDB; set MONGODB_URL/);
  t.is((await insert(new Map<string, unknown>([['_id', { 7: 1, a: 2 }]]))).n, 1);
  const nested = { find: 'c', filter: { _id: new Map(Object.entries({ a: 2 })).set('7', 1) } };
  t.is((await client.command(nested)).code, 2);
});

test('a write with w: 0 is rejected, even if the client requests a response', async (t) => {
  const client = await connectRaw(t, (await startMongo(t)).url);
  const write = { insert: 'c', documents: [{ _id: 1 }], writeConcern: { w: 0 } };
  t.is((await client.command(write)).code, 238);
  t.deepEqual((await client.command({ find: 'c' })).cursor.firstBatch, []);
});
