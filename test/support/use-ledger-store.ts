import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ExecutionContext } from 'ava';
import { LedgerStore, type LedgerOptions } from '../../shared/ledger/ledger-store.ts';
import { createLogger } from '../../shared/platform/runtime/logger.ts';
import {
  openMongo,
  type Database,
  type MongoConnection,
} from '../../shared/platform/storage/mongo-client.ts';
import { openTestMongo } from './stores.ts';

/** Opens an empty ledger in a database of the test's own. */
export async function useLedgerStore(
  t: ExecutionContext,
  options: LedgerOptions = {},
): Promise<{ readonly mongo: MongoConnection; readonly db: Database; readonly ledger: LedgerStore }> {
  const dir = await mkdtemp(join(tmpdir(), 'mg-test-'));
  const server = await openTestMongo({ dir });
  const mongo = openMongo(server.url, createLogger('test', 'silent'));
  t.teardown(async () => {
    await mongo.close();
    await server.close();
    await rm(dir, { recursive: true, force: true });
  });
  const ledger = new LedgerStore(mongo.db, options);
  await ledger.createIndexes();
  return { mongo, db: mongo.db, ledger };
}
