import type { ChildProcess } from 'node:child_process';
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';
import type { ExecutionContext } from 'ava';
import test from 'ava';
import mongoose from 'mongoose';
import { addCredentials } from '../../../../scripts/embedded/credentials.ts';
import { connect, makeCollection, makeTempDir, startMongo } from './mongo-fixture.ts';

const main = new URL('../../../../scripts/embedded/mongo/main.js', import.meta.url).pathname;
const password = 'test-mongo-password';

function startProcess(t: ExecutionContext, dir: string, env: NodeJS.ProcessEnv = {}): ChildProcess {
  const child = fork(main, ['--dir', dir], { silent: true, execArgv: [], env: { ...process.env, ...env } });
  t.teardown(() => child.kill('SIGKILL'));
  child.stdin!.on('error', () => undefined); // A process that refuses to start does not read stdin.
  child.stdin!.end(password);
  return child;
}

async function readUrl(child: ChildProcess): Promise<string> {
  const [line] = (await once(createInterface(child.stdout!), 'line')) as [string];
  return addCredentials((JSON.parse(line) as { endpoint: string }).endpoint, password);
}

test('after kill -9 during writes, no acknowledged write is lost and the indexes are consistent', async (t) => {
  const dir = await makeTempDir(t);
  let acknowledged = 0;
  let sent = 0;
  for (let round = 0; round < 5; round += 1) {
    const child = startProcess(t, dir);
    const url = await readUrl(child);
    const client = await mongoose.mongo.MongoClient.connect(url, { retryWrites: false });
    const rows = client.db('test').collection<{ _id: string; writer: number; n: number }>('rows');
    await rows.createIndex({ writer: 1, n: 1 }, { unique: true });
    const before = await rows.countDocuments();
    t.true(before >= acknowledged && before <= sent, `${acknowledged} <= ${before} <= ${sent}`);
    t.is(await rows.countDocuments({ writer: { $gte: 0 } }), before, 'counted from the index alone');
    acknowledged = before;
    sent = before;

    const exited = once(child, 'exit');
    const write = async (writer: number) => {
      // Runs until the server is killed: a write in flight at that moment may or may not have been applied.
      for (let n = round * 1_000_000; ; n += 1) {
        sent += 1;
        await rows.insertOne({ _id: `${writer}-${n}`, writer, n });
        acknowledged += 1;
        if (acknowledged - before === 200 + round * 37) child.kill('SIGKILL');
      }
    };
    const writers = Array.from({ length: 8 }, (_, writer) => write(writer));
    await exited;
    // Fails the writes for which the driver still looks for a server.
    await client.close(true);
    const ends = await Promise.allSettled(writers);
    t.true(ends.every(({ status }) => status === 'rejected'));
  }
  const mongo = await startMongo(t, { dir });
  const client = await mongoose.mongo.MongoClient.connect(mongo.url);
  t.teardown(() => client.close());
  const rows = client.db('test').collection('rows');
  const count = await rows.countDocuments();
  t.true(count >= acknowledged && count <= sent);
  const byIndex = rows.find().sort({ writer: 1, n: 1 });
  t.regex(JSON.stringify(await byIndex.clone().explain('queryPlanner')), /writer_1_n_1/);
  t.is((await byIndex.toArray()).length, count);
  t.is((await rows.find().sort({ _id: 1 }).toArray()).length, count);
});

test('a restart finds collections, indexes and documents unchanged', async (t) => {
  const dir = await makeTempDir(t);
  const first = await startMongo(t, { dir, sync: true });
  const client = await mongoose.mongo.MongoClient.connect(first.url);
  const things = client.db('test').collection('things');
  await things.createIndex({ k: 1 }, { unique: true, partialFilterExpression: { live: true } });
  await things.insertMany([{ k: 1 }, { k: 3, live: true }, {}]);
  await client.close();
  await first.close();

  const second = await startMongo(t, { dir });
  const again = await mongoose.mongo.MongoClient.connect(second.url);
  t.teardown(() => again.close());
  const found = again.db('test').collection('things');
  t.is(await found.countDocuments(), 3);
  await t.throwsAsync(found.insertOne({ k: 3, live: true }), { code: 11000 });
  t.deepEqual(
    (await found.indexes()).map(({ name }) => name),
    ['_id_', 'k_1'],
  );
  await found.insertOne({ k: 4 });
  t.is(await found.countDocuments({ k: { $gte: 2 } }), 2);
});

test('a second process on the same directory fails to start, and the error identifies the first one', async (t) => {
  const dir = await makeTempDir(t);
  const holder = startProcess(t, dir);
  await readUrl(holder);
  const second = startProcess(t, dir);
  const [stderr, [code]] = await Promise.all([text(second.stderr!), once(second, 'exit')]);
  t.is(code, 1);
  t.is(stderr.trim(), `The embedded MongoDB in ${dir} is already in use by process ${holder.pid}.`);
  await t.throwsAsync(startMongo(t, { dir }), { message: new RegExp(`process ${holder.pid}\\.$`) });

  const exited = once(holder, 'exit');
  holder.kill('SIGTERM');
  t.deepEqual(await exited, [0, null]);
  await t.notThrowsAsync(startMongo(t, { dir }));
});

test('the lock of a process that no longer exists is ignored', async (t) => {
  const dir = await makeTempDir(t);
  await writeFile(join(dir, 'lock'), JSON.stringify({ pid: process.pid, startedAt: 'long ago' }));
  await t.notThrowsAsync(startMongo(t, { dir }));
});

test('with NODE_ENV=production the server refuses to start, and prints one sentence', async (t) => {
  const child = startProcess(t, await makeTempDir(t), { NODE_ENV: 'production' });
  const [stderr, [code]] = await Promise.all([text(child.stderr!), once(child, 'exit')]);
  t.is(code, 1);
  t.is(stderr.trim(), 'The embedded MongoDB does not run with NODE_ENV=production; set MONGODB_URL.');
});

test('on SIGTERM the server completes the writes in flight and exits with 0', async (t) => {
  const dir = await makeTempDir(t);
  const child = startProcess(t, dir);
  const url = await readUrl(child);
  const client = await mongoose.mongo.MongoClient.connect(url, { retryWrites: false });
  t.teardown(() => client.close(true));
  const rows = client.db('test').collection<{ _id: number }>('rows');
  const exited = once(child, 'exit');
  let acknowledged = 0;
  const insert = async (_id: number) => {
    await rows.insertOne({ _id });
    acknowledged += 1;
    if (acknowledged === 50) child.kill('SIGTERM');
  };
  const inserts = Promise.allSettled(Array.from({ length: 500 }, (_, i) => insert(i)));
  t.deepEqual(await exited, [0, null]);
  // Fails the writes for which the driver still looks for a server.
  await client.close(true);
  await inserts;
  const mongo = await startMongo(t, { dir });
  const again = await mongoose.mongo.MongoClient.connect(mongo.url);
  t.teardown(() => again.close());
  t.true((await again.db('test').collection('rows').countDocuments()) >= acknowledged);
});

test('TTL indexes expire documents, automatically and on demand', async (t) => {
  const mongo = await startMongo(t, { ttlIntervalMs: 50 });
  const connection = await connect(t, mongo.url);
  const things = makeCollection(connection);
  await things.createIndex({ at: 1 }, { expireAfterSeconds: 10 });
  const ago = (seconds: number) => new Date(Date.now() - seconds * 1000);
  await things.insertMany([{ at: ago(20) }, { at: ago(5) }, { at: 'never' }, {}]);
  await mongo.expireDocuments();
  t.is(await things.countDocuments(), 3);

  const soon = makeCollection(connection);
  await soon.createIndex({ at: 1 }, { expireAfterSeconds: 0 });
  await soon.insertMany([{ at: new Date(Date.now() + 200) }, { at: new Date(Date.now() + 3_600_000) }]);
  const deadline = Date.now() + 10_000;
  while ((await soon.countDocuments()) > 1 && Date.now() < deadline);
  t.is(await soon.countDocuments(), 1);
});
