import test, { type ExecutionContext } from 'ava';
import mongoose from 'mongoose';
import { addCredentials } from '../../scripts/embedded/credentials.ts';
import {
  startEmbedded,
  type EmbeddedProcess,
  type EmbeddedProcessOptions,
} from '../support/embedded-process.ts';
import { holdMongoConnections } from './attacks/mongodb-held-connections.ts';
import { sendMalformedMessages } from './attacks/mongodb-malformed-messages.ts';
import { leaveMongoRepliesUnread } from './attacks/mongodb-unread-answers.ts';

const password = 'test-mongo-password';
/** Allowed memory growth of the embedded MongoDB since its start. */
const maxGrowthBytes = 120_000_000;

async function startMongo(t: ExecutionContext, options: EmbeddedProcessOptions = {}) {
  const server = await startEmbedded(t, 'mongo', { input: password, ...options });
  const url = addCredentials(server.endpoint, password);
  const peakBytes = (await server.readPeakBytes()) ?? 0;
  return { server, url, mongodbUrl: server.endpoint, peakBytes };
}

/** Checks that an authenticated client is served on a new connection. */
async function writeAndRead(url: string): Promise<void> {
  const client = await mongoose.mongo.MongoClient.connect(url, { serverSelectionTimeoutMS: 60_000 });
  try {
    const things = client.db('test').collection('things');
    const { insertedId } = await things.insertOne({ a: 1 });
    if ((await things.findOne({ _id: insertedId })) === null)
      throw new Error('the written document is missing');
  } finally {
    await client.close();
  }
}

async function checkUnharmed(t: ExecutionContext, server: EmbeddedProcess, url: string, before: number) {
  await writeAndRead(url);
  const grown = ((await server.readPeakBytes()) ?? 0) - before;
  t.log(`grew by ${Math.round(grown / 1_000_000)} MB at most`);
  t.true(grown < maxGrowthBytes);
  t.is(await server.stop(), 0);
}

test('an invalid MongoDB message closes its connection, and does not affect other clients', async (t) => {
  const { server, url, mongodbUrl, peakBytes } = await startMongo(t);
  const { opened, closed } = await sendMalformedMessages({ mongodbUrl });
  t.is(closed, opened);
  await checkUnharmed(t, server, url, peakBytes);
});

test('the number of idle unauthenticated connections is limited, and they do not lock out authenticated clients', async (t) => {
  const { server, url, mongodbUrl, peakBytes } = await startMongo(t);
  const held = await holdMongoConnections({ mongodbUrl, whileHeld: () => writeAndRead(url) });
  t.true(held <= 256, `${held} connections are held`);
  await checkUnharmed(t, server, url, peakBytes);
});

test('the server survives more connections than its open file limit', async (t) => {
  const { server, url, mongodbUrl, peakBytes } = await startMongo(t, { maxFiles: 64 });
  await holdMongoConnections({ mongodbUrl, whileHeld: () => Promise.resolve() });
  await checkUnharmed(t, server, url, peakBytes);
});

test('the server stops accepting commands from a client that does not read the replies', async (t) => {
  const { server, url, mongodbUrl, peakBytes } = await startMongo(t);
  const { sentBytes, acceptedBytes } = await leaveMongoRepliesUnread({ mongodbUrl });
  t.log(`${acceptedBytes} of ${sentBytes} bytes were accepted`);
  await checkUnharmed(t, server, url, peakBytes);
});
