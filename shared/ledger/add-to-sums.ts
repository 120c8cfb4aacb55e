import type mongoose from 'mongoose';
import { insertMissing } from '../platform/storage/insert-missing.ts';
import type { Collection } from '../platform/storage/mongo-client.ts';
import type { StreamId } from './usage-event.ts';

/** The last stream entry included in a document's sums. It distinguishes a repeated entry from a new one. */
export interface Applied {
  readonly appliedMs: number;
  readonly appliedSeq: number;
}

/** A document with sums over ledger entries of one shard. */
export interface SumsDocument extends Applied {
  readonly _id: string;
}

export interface SumsChange<T extends SumsDocument> {
  /** The last entry that the stored sums include; null if there is no document yet. */
  readonly from: StreamId | null;
  /** To add to the stored sums, with the last entry that is then included. */
  readonly sums: T;
}

/** Returns the last entry that each document includes. Documents that do not exist are missing. */
export async function findApplied<T extends SumsDocument>(
  collection: Collection<T>,
  ids: readonly string[],
): Promise<Map<string, StreamId>> {
  const filter = { _id: { $in: [...ids] } } as mongoose.mongo.Filter<T>;
  const found = await collection
    .find(filter)
    .project<SumsDocument>({ appliedMs: 1, appliedSeq: 1 })
    .toArray();
  return new Map(found.map(({ _id, appliedMs, appliedSeq }) => [_id, { ms: appliedMs, seq: appliedSeq }]));
}

/**
 * Adds sums. Changes a document only if nothing has been applied to it since `from` was read.
 * @param names of the fields that are sums
 * @returns false if any document was not changed
 */
export async function addToSums<T extends SumsDocument>(
  collection: Collection<T>,
  names: readonly (keyof T & string)[],
  changes: readonly SumsChange<T>[],
): Promise<boolean> {
  const added = changes.filter(({ from }) => from === null).map(({ sums }) => sums);
  if ((await insertMissing(collection, added)) < added.length) return false;
  const existing = changes.filter(({ from }) => from !== null);
  if (existing.length === 0) return true;
  const updates = existing.map(({ from, sums }) => ({
    updateOne: {
      filter: { _id: sums._id, appliedMs: from!.ms, appliedSeq: from!.seq } as mongoose.mongo.Filter<T>,
      update: {
        $inc: Object.fromEntries(names.map((name) => [name, sums[name]])),
        $set: { appliedMs: sums.appliedMs, appliedSeq: sums.appliedSeq },
      } as unknown as mongoose.mongo.UpdateFilter<T>,
    },
  }));
  const { matchedCount } = await collection.bulkWrite(updates, { ordered: false });
  return matchedCount === existing.length;
}
