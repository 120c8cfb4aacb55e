// decision 0097
import type mongoose from 'mongoose';
import { isIndexConflict, type Collection, type Database } from '../platform/storage/mongo-client.ts';

/** How far back customers see their requests. Operators see all rows. */
export const logLifetimeSeconds = 72 * 60 * 60;

/**
 * The order of lists, newest first, for each filter of operators and customers. A list without an outcome merges successes
 * and failures, so that neither needs an index without the outcome.
 */
export const requestListIndexes = {
  byAccount: { accountId: 1, success: 1, at: -1, _id: -1 },
  byAccountAndModel: { accountId: 1, model: 1, success: 1, at: -1, _id: -1 },
  byAccountAndUpstream: { accountId: 1, upstream: 1, success: 1, at: -1, _id: -1 },
  byUpstream: { upstream: 1, success: 1, at: -1, _id: -1 },
  byModel: { model: 1, success: 1, at: -1, _id: -1 },
  all: { success: 1, at: -1, _id: -1 },
} as const;

/** Creates the indexes of the request log, and sets how long its rows are kept. */
export async function createRequestLogIndexes<T extends mongoose.mongo.Document>(
  db: Database,
  logs: Collection<T>,
  retentionDays: number,
): Promise<void> {
  await setRetention(db, logs, retentionDays * 24 * 60 * 60);
  // Pages of a customer, by number; and the numbers that are not older than 72 hours.
  await logs.createIndex({ accountId: 1, ordinal: -1 });
  await logs.createIndex({ accountId: 1, settledAt: 1, ordinal: 1 });
  for (const fields of Object.values(requestListIndexes)) await logs.createIndex(fields);
}

/** MongoDB removes a row when this time has passed since its settlement. */
async function setRetention<T extends mongoose.mongo.Document>(
  db: Database,
  logs: Collection<T>,
  expireAfterSeconds: number,
): Promise<void> {
  const fields = { settledAt: 1 } as const;
  try {
    await logs.createIndex(fields, { expireAfterSeconds });
  } catch (error) {
    if (!isIndexConflict(error)) throw error;
    await db.command({ collMod: logs.collectionName, index: { keyPattern: fields, expireAfterSeconds } });
  }
}
