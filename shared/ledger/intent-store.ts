import type mongoose from 'mongoose';
import { insertMissing } from '../storage/insert-missing.ts';
import type { Collection, Database } from '../storage/mongo-client.ts';
import { newestRead } from '../storage/mongo-durability.ts';

interface Intent {
  /** The shard. */
  readonly _id: string;
  readonly accountIds: readonly string[];
}

/**
 * Of which accounts the ledger may have rows of a batch whose checkpoint is not written yet. Written before the first of
 * those rows: whoever finds a batch half written, and Redis without its entries, knows by it where to look. It may name
 * more accounts than that.
 */
export class IntentStore {
  readonly #intents: Collection<Intent>;

  constructor(db: Database) {
    this.#intents = db.collection('ledger_intents');
  }

  /**
   * A power failure may end Redis and MongoDB's primary at once. This is the first that a reader asks the new primary, which
   * then has all that ever was acknowledged, and so is all that the reader asks it afterwards.
   */
  async read(shard: number): Promise<ReadonlySet<string>> {
    const found = await this.#intents.findOne({ _id: String(shard) }, newestRead);
    return new Set(found?.accountIds);
  }

  /** Beside those that are there: another reader may add its own at the same time. */
  async add(shard: number, accountIds: readonly string[]): Promise<void> {
    await this.#change(shard, accountIds, { $addToSet: { accountIds: { $each: [...accountIds] } } });
  }

  /** Begins anew, where the list has become long. */
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
