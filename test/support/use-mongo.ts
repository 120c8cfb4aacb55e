import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ExecutionContext, TestFn } from 'ava';
import { addCredentials } from '../../scripts/embedded/credentials.ts';
import { startEmbeddedMongo, type EmbeddedMongo } from '../../scripts/embedded/mongo/server.ts';
import { createLogger } from '../../shared/platform/runtime/logger.ts';
import { openMongo, type MongoConnection } from '../../shared/platform/storage/mongo-client.ts';
import { withDatabase } from './given-mongo.ts';
import { openTestMongo, type OpenedStore } from './stores.ts';
import { findStablePort } from './stable-port.ts';

/**
 * Starts one MongoDB for the tests of a file.
 * @returns a function that connects a test to its own database until the test ends
 */
export function useMongo(test: TestFn): (t: ExecutionContext) => MongoConnection {
  let dir: string;
  let server: OpenedStore;
  test.before(async () => {
    dir = await mkdtemp(join(tmpdir(), 'mg-test-'));
    server = await openTestMongo({ dir });
  });
  test.after.always(async () => {
    await server.close();
    await rm(dir, { recursive: true, force: true });
  });
  return (t) => {
    const mongo = openMongo(withDatabase(server.url, randomUUID()), createLogger('test', 'silent'));
    t.teardown(async () => {
      // The folder of the test's own server is removed as a whole.
      if (server.server === null) await mongo.db.dropDatabase();
      await mongo.close();
    });
    return mongo;
  };
}

/** A connection to a MongoDB that is not running yet. `start` starts it, always on the same port with the same data. */
export interface AbsentMongo {
  readonly mongo: MongoConnection;
  readonly start: () => Promise<EmbeddedMongo>;
}

export async function openAbsentMongo(t: ExecutionContext): Promise<AbsentMongo> {
  const dir = await mkdtemp(join(tmpdir(), 'mg-test-'));
  const port = await findStablePort();
  const password = 'test-mongo-password';
  const url = addCredentials(`mongodb://127.0.0.1:${port}/?directConnection=true`, password);
  const mongo = openMongo(url, createLogger('test', 'silent'));
  t.teardown(async () => {
    await mongo.close();
    await rm(dir, { recursive: true });
  });
  return { mongo, start: () => startEmbeddedMongo({ dir, password, port, sync: false }) };
}
