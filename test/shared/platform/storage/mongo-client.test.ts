import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { mkdtemp, rm } from 'node:fs/promises';
import type { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'ava';
import mongoose from 'mongoose';
import { startEmbeddedMongo } from '../../../../scripts/embedded/mongo/server.ts';
import { AccountStore } from '../../../../shared/accounts/account-store.ts';
import { createLogger } from '../../../../shared/platform/runtime/logger.ts';
import {
  callMongo,
  isMongoUnavailable,
  openMongo,
} from '../../../../shared/platform/storage/mongo-client.ts';
import { openAbsentMongo } from '../../../support/use-mongo.ts';
import { waitFor } from '../../../support/wait-for.ts';

const { MongoServerError } = mongoose.mongo;

test('a command on a closing connection is retried, and does not wait forever', async (t) => {
  t.timeout(10_000);
  const dir = await mkdtemp(join(tmpdir(), 'mg-test-'));
  const server = await startEmbeddedMongo({ dir, sync: false });
  const sockets: Socket[] = [];
  const note = (message: unknown): void => {
    sockets.push((message as { socket: Socket }).socket);
  };
  subscribe('net.client.socket', note);
  const mongo = openMongo(server.url, createLogger('test', 'silent'));
  t.teardown(async () => {
    unsubscribe('net.client.socket', note);
    await mongo.close();
    await server.close();
    await rm(dir, { recursive: true });
  });
  const things = mongo.db.collection<{ _id: string; count: number }>('things');
  await things.insertOne({ _id: 'a', count: 0 });
  // As in Node when the server closes the connection: the socket is destroyed now, and emits its event a moment later.
  for (const socket of sockets) socket.destroy();
  await things.updateOne({ _id: 'a' }, { $inc: { count: 1 } });
  t.is((await things.findOne())?.count, 1);
});

test('if the first command finds no server, later commands find it once it is running', async (t) => {
  const { mongo, start } = await openAbsentMongo(t);
  const things = mongo.db.collection<{ _id: string }>('things');
  const error = await t.throwsAsync(things.insertOne({ _id: 'too early' }));
  t.true(isMongoUnavailable(error));
  const server = await start();
  t.teardown(() => server.close());
  await waitFor('the server to be found', () => things.insertOne({ _id: 'a' }).catch(() => null));
  t.is(await things.countDocuments(), 1);
});

test('a connection interrupted during a command is treated as an outage, even if the driver throws the bare socket error', async (t) => {
  const fail = (code: string) => (): Promise<never> =>
    Promise.reject(Object.assign(new Error(`write ${code}`), { code, syscall: 'write' }));
  for (const code of ['EPIPE', 'ECONNRESET']) {
    await t.throwsAsync(callMongo(fail(code)), { code: 'service_unavailable' }, code);
  }
  await t.throwsAsync(callMongo(fail('EACCES')), { code: 'EACCES' });
  await t.throwsAsync(
    callMongo(() => Promise.reject(new TypeError('ours'))),
    { instanceOf: TypeError },
  );
});

test('a stepdown of the primary is treated as an outage, even if the driver does not retry the command; a rejection is not', async (t) => {
  const fail = (code: number) => (): Promise<never> =>
    Promise.reject(new MongoServerError({ code, message: 'the server said so' }));
  for (const code of [10_107, 189, 91, 11_600, 11_602, 13_435, 13_436, 64])
    await t.throwsAsync(callMongo(fail(code)), { code: 'service_unavailable' }, String(code));
  for (const code of [2, 13, 11_000]) await t.throwsAsync(callMongo(fail(code)), { code }, String(code));
});

test('while MongoDB is unavailable, looking up accounts by id fails as an outage', async (t) => {
  const { mongo } = await openAbsentMongo(t);
  const accounts = new AccountStore(mongo.db, { masterKey: 'm'.repeat(32), revealsKeys: true });
  await t.throwsAsync(accounts.findByIds(['a']), { code: 'service_unavailable' });
});
