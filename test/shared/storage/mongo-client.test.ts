import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { mkdtemp, rm } from 'node:fs/promises';
import type { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'ava';
import { addCredentials } from '../../../scripts/embedded/credentials.ts';
import { startEmbeddedMongo } from '../../../scripts/embedded/mongo/server.ts';
import { createLogger } from '../../../shared/runtime/logger.ts';
import { isMongoAway, openMongo } from '../../../shared/storage/mongo-client.ts';
import { findStablePort } from '../../support/stable-port.ts';
import { waitFor } from '../../support/wait-for.ts';

test('a command that meets a connection in the moment of its end is told again, and does not wait for ever', async (t) => {
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
  // What Node does when the other end is closed: the socket is destroyed now, and says so a moment later.
  for (const socket of sockets) socket.destroy();
  await things.updateOne({ _id: 'a' }, { $inc: { count: 1 } });
  t.is((await things.findOne())?.count, 1);
});

test('a client whose first command found no server finds it once it is there', async (t) => {
  const dir = await mkdtemp(join(tmpdir(), 'mg-test-'));
  const port = await findStablePort();
  const password = 'test-mongo-password';
  const url = addCredentials(`mongodb://127.0.0.1:${port}/?directConnection=true`, password);
  const mongo = openMongo(url, createLogger('test', 'silent'));
  t.teardown(async () => {
    await mongo.close();
    await rm(dir, { recursive: true });
  });
  const things = mongo.db.collection<{ _id: string }>('things');
  const error = await t.throwsAsync(things.insertOne({ _id: 'too early' }));
  t.true(isMongoAway(error));
  const server = await startEmbeddedMongo({ dir, password, port, sync: false });
  t.teardown(() => server.close());
  await waitFor('the server to be found', () => things.insertOne({ _id: 'a' }).catch(() => null));
  t.is(await things.countDocuments(), 1);
});
