import mongoose from 'mongoose';
import { duplicateKeyCode, type Collection } from './mongo-client.ts';

/**
 * Inserts the documents that do not exist yet. A document written before a crash is left unchanged.
 * @returns how many were inserted
 */
export async function insertMissing<T extends mongoose.mongo.Document>(
  collection: Collection<T>,
  documents: readonly T[],
): Promise<number> {
  if (documents.length === 0) return 0;
  try {
    const result = await collection.insertMany(
      [...documents] as mongoose.mongo.OptionalUnlessRequiredId<T>[],
      {
        ordered: false,
      },
    );
    return result.insertedCount;
  } catch (error) {
    if (!(error instanceof mongoose.mongo.MongoBulkWriteError)) throw error;
    const errors = [error.writeErrors].flat();
    // The driver also reports a lost connection as a bulk error, without any write error in it.
    if (errors.length === 0 || !errors.every((one) => one.code === duplicateKeyCode)) throw error;
    return documents.length - errors.length;
  }
}
