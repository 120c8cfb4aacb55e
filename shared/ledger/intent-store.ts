// decision 0047
import type mongoose from 'mongoose';
import { insertMissing } from '../platform/storage/insert-missing.ts';
import type { Collection, Database } from '../platform/storage/mongo-client.ts';
import { linearizableRead } from '../platform/storage/mongo-durability.ts';

interface Intent {
  /** The shard. */
  readonly _id: string;
  readonly accountIds: readonly string[];
}

/**
 * Accounts whose rows may be in the ledger although their batch's checkpoint is not written yet. This is written before
 * the first of those rows. If Redis loses the entries of a half-written batch, this list shows which accounts to check.
 * It may contain more accounts than necessary.
 */
export class IntentStore {
  readonly #intents: Collection<Intent>;

  constructor(db: Database) {
    this.#intents = db.collection('ledger_intents');
  }

  /**
   * Reads a shard's list, and ensures that MongoDB's primary has every acknowledged write, for this read and the reads
   * after it. A reader therefore calls this first: a power failure may take down Redis and the primary at the same
   * time, and a new primary may not have every write yet.
   */
  async read(shard: number): Promise<ReadonlySet<string>> {
    const found = await this.#intents.findOne({ _id: String(shard) }, linearizableRead);
    return new Set(found?.accountIds);
  }

  /** Adds to the existing list, because another reader may add accounts at the same time. */
  async add(shard: number, accountIds: readonly string[]): Promise<void> {
    await this.#change(shard, accountIds, { $addToSet: { accountIds: { $each: [...accountIds] } } });
  }

  /** Starts a new list when the old one has become long. */
  async replace(shard: number, accountIds: readonly string[]): Promise<void> {
    await this.#change(shard, accountIds, { $set: { accountIds } });
  }

  async #change(
    shard: number,
    accountIds: readonly string[],
    update: mongoose.mongo.UpdateFilter<Intent>,
  ): Promise<void> {
    const _id = String(shard);
    const { matchedCount } = await this.#intents.updateOne({ _id }, update);
    if (matchedCount === 1 || (await insertMissing(this.#intents, [{ _id, accountIds }])) === 1) return;
    await this.#intents.updateOne({ _id }, update);
  }
}
