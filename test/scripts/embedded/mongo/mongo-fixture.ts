import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ExecutionContext } from 'ava';
import type { Connection } from 'mongoose';
import mongoose from 'mongoose';
import type { EmbeddedMongo, EmbeddedMongoOptions } from '../../../../scripts/embedded/mongo/server.ts';
import { startEmbeddedMongo } from '../../../../scripts/embedded/mongo/server.ts';

/** The part of the context of an ava test or hook that these helpers need. */
export type Teardown = Pick<ExecutionContext, 'teardown'>;

export async function makeTempDir(t: Teardown): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), 'embedded-mongo-'));
  t.teardown(() => rm(dir, { recursive: true, force: true }));
  return dir;
}

export async function startMongo(
  t: Teardown,
  options: Partial<EmbeddedMongoOptions> = {},
): Promise<EmbeddedMongo & { dir: string }> {
  const dir = options.dir ?? (await makeTempDir(t));
  const mongo = await startEmbeddedMongo({ sync: false, ...options, dir });
  let closing: Promise<void> | undefined;
  const close = () => {
    closing ??= mongo.close();
    return closing;
  };
  t.teardown(close);
  return { ...mongo, close, dir };
}

/** A connection with a database for one test, which is dropped afterwards. */
export async function connect(t: Teardown, url: string): Promise<Connection> {
  const dbName = `test-${randomBytes(6).toString('hex')}`;
  const connection = await mongoose.createConnection(url, { dbName }).asPromise();
  t.teardown(async () => {
    if (connection.readyState === mongoose.ConnectionStates.connected) await connection.dropDatabase();
    await connection.close();
  });
  return connection;
}

/**
 * A connection to the server under test: the one in MONGODB_URL, otherwise an embedded one owned by the test.
 */
export async function connectToAny(t: Teardown): Promise<Connection> {
  const url = process.env.MONGODB_URL ?? (await startMongo(t)).url;
  return connect(t, url);
}

let collections = 0;

/** The documents that tests store: any `_id` and any other fields. */
export interface TestDocument extends mongoose.mongo.Document {
  _id?: string | number | mongoose.mongo.ObjectId;
}

export function makeCollection(connection: Connection): mongoose.mongo.Collection<TestDocument> {
  collections += 1;
  return connection.db!.collection<TestDocument>(`c${collections}`);
}
