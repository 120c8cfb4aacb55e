// decision 0047
import {
  DeadLetters,
  maxDeadLetters,
  readAccount,
  type UnreadEntry,
} from '../../shared/ledger/dead-letters-store.ts';
import {
  formatStreamId,
  parseLedgerEntry,
  parseStreamId,
  UnreadableEntry,
  type LedgerEntry,
  type StreamId,
} from '../../shared/ledger/usage-event.ts';
import { LuaScript } from '../../shared/platform/redis/lua-script.ts';
import { redisKeys, shardOf } from '../../shared/platform/redis/redis-keys.ts';
import { applyEntries } from './apply-entries.ts';
import type { ShardState } from './peek-shards.ts';
import { restoreLostEntries, type RestoreDeps } from './restore-lost-entries.ts';

export const batchSize = 1_000;

/** A stream ID, and a flat list of fields and values. */
type RawEntry = readonly [string, readonly string[]];

/** A parsed batch of the stream. */
interface Batch {
  /** Entries whose amounts are applied. */
  readonly entries: readonly LedgerEntry[];
  /** Entries that could not be read, or not completely. */
  readonly unreadEntries: readonly UnreadEntry[];
  readonly last: StreamId;
}

/** The shard has no space for more dead letters. */
export class TooManyDeadLetters extends Error {
  override readonly name = 'TooManyDeadLetters';
}

/** Maximum number of accounts in an intent, unless a single batch has more. */
const maxIntent = batchSize;

const trimScript = new LuaScript(
  new URL('./trim-ledger.lua', import.meta.url),
  ['stream', 'trimmed', 'deadLetters', 'last', 'firstKept'],
  { itemNames: ['unread', 'reason', 'isCounted'] },
);

/**
 * Moves the ledger entries of one shard from its Redis stream to MongoDB, batch by batch. Once another reader has moved
 * a batch, or a method has failed, the state of this instance is invalid, and a new one must replace it.
 *
 * Redis may come back at any moment with less data than it had. Each batch is read together with the trim position that
 * Redis recorded, and is trimmed only if the stream still contains it. So a loss is detected before the next batch is
 * applied, and lost entries that MongoDB has are added to the sums before any later entry.
 */
export class ShardLedger {
  readonly #dependencies: RestoreDeps;
  readonly #shard: number;
  /** The trim position up to which Redis is known to match MongoDB; null if that must be checked. */
  #verifiedUpTo: string | null = null;
  /** Accounts announced to MongoDB. A batch with other accounts is announced first. */
  #intent: ReadonlySet<string> = new Set();

  constructor(dependencies: RestoreDeps, shard: number) {
    this.#dependencies = dependencies;
    this.#shard = shard;
  }

  /** Returns whether there are entries to move, or Redis may have lost data. */
  hasWork({ trimmed, isEmpty }: ShardState): boolean {
    return !isEmpty || trimmed !== this.#verifiedUpTo;
  }

  /**
   * Moves one batch.
   * @returns how many entries were moved
   * @throws LedgerConflict if another reader moved it first
   */
  async moveBatch(maxEntries = batchSize): Promise<number> {
    const { trimmed, raw } = await this.#read(maxEntries);
    // If this reader did not write the trim position, Redis may have lost data.
    if (trimmed !== this.#verifiedUpTo) {
      this.#intent = await this.#dependencies.store.intents.read(this.#shard);
      this.#verifiedUpTo = null;
      // The batch may date from before the restore, so the next call reads it again.
      if (await restoreLostEntries(this.#dependencies, this.#shard, trimmed, this.#intent)) return 0;
      this.#verifiedUpTo = trimmed;
    }
    if (raw.length === 0) return 0;
    const batch = parseBatch(this.#shard, raw);
    await this.#checkSpace(batch.unreadEntries);
    await this.#announce(batch.entries);
    await this.#move(batch);
    // Otherwise nothing was trimmed: another reader was faster, or Redis lost data.
    if (this.#verifiedUpTo !== null) this.#logUnread(batch.unreadEntries);
    return raw.length;
  }

  /**
   * Reads from the start of the stream. Entries are trimmed only after the checkpoint is written, so everything in the
   * stream still has to be moved.
   */
  async #read(maxEntries: number): Promise<{ readonly trimmed: string; readonly raw: readonly RawEntry[] }> {
    const replies = await this.#dependencies.redis
      .multi()
      .get(redisKeys.ledgerTrimmed(this.#shard))
      .xrange(redisKeys.ledgerStream(this.#shard), '-', '+', 'COUNT', maxEntries)
      .exec();
    const [trimmed, raw] = (replies ?? []).map(([error, value]) => {
      if (error !== null) throw error;
      return value;
    }) as [string | null, RawEntry[]];
    return { trimmed: trimmed ?? '0-0', raw };
  }

  /** @throws TooManyDeadLetters */
  async #checkSpace(unreadEntries: readonly UnreadEntry[]): Promise<void> {
    if (unreadEntries.length === 0) return;
    const count = await new DeadLetters(this.#dependencies.redis).count(this.#shard);
    if (count + unreadEntries.length > maxDeadLetters)
      throw new TooManyDeadLetters(
        `shard ${this.#shard} has ${count} dead letters, and ${unreadEntries.length} more`,
      );
  }

  #logUnread(unreadEntries: readonly UnreadEntry[]): void {
    for (const { streamId, accountId, reason, isCounted } of unreadEntries)
      this.#dependencies.log.error(
        { shard: this.#shard, streamId, accountId, reason },
        isCounted
          ? 'ledger entry moved to the dead letters: its amounts are counted, but its event cannot be read'
          : 'ledger entry moved to the dead letters and not counted: see "admin ledger dead"',
      );
  }

  /**
   * Announces the accounts of a batch to MongoDB. Most batches contain only accounts that were already announced, and
   * need no write.
   */
  async #announce(entries: readonly LedgerEntry[]): Promise<void> {
    const accountIds = new Set(entries.map((entry) => entry.event.accountId));
    const added = [...accountIds].filter((id) => !this.#intent.has(id));
    if (added.length === 0) return;
    const { intents } = this.#dependencies.store;
    if (this.#intent.size + added.length <= maxIntent) {
      await intents.add(this.#shard, added);
      this.#intent = new Set([...this.#intent, ...added]);
    } else {
      await intents.replace(this.#shard, [...accountIds]);
      this.#intent = accountIds;
    }
  }

  async #move({ entries, unreadEntries, last }: Batch): Promise<void> {
    const { redis, store } = this.#dependencies;
    const shard = this.#shard;
    const repeated = await applyEntries(store, entries);
    // Restore the accounts before trimming: if this fails, the batch is read again and the same accounts are found
    // again.
    await this.#restore(repeated, 'Redis lost a balance change and applied it twice; restoring the account');
    const uncounted = findUncountedAccounts(shard, unreadEntries);
    await this.#restore(uncounted, 'a ledger entry of the account is not counted; restoring the account');
    await store.writeCheckpoint(shard, last);
    const values = {
      stream: redisKeys.ledgerStream(shard),
      trimmed: redisKeys.ledgerTrimmed(shard),
      deadLetters: redisKeys.ledgerDead(shard),
      last: formatStreamId(last),
      firstKept: formatStreamId(next(last)),
    };
    const unread = unreadEntries.map(({ streamId, reason, isCounted }) => ({
      unread: streamId,
      reason,
      isCounted: isCounted ? 1 : 0,
    }));
    this.#verifiedUpTo = (await trimScript.run(redis, values, unread)) as string | null;
  }

  /** Restores accounts from MongoDB, so that their balances in Redis include the same entries. */
  async #restore(accountIds: ReadonlySet<string>, message: string): Promise<void> {
    if (accountIds.size === 0) return;
    const { store, hotAccounts, log } = this.#dependencies;
    // Entries of a missing account have no balance to change; `ledger verify` reports them.
    for (const accountId of (await store.findAppliedPositions([...accountIds])).keys()) {
      await hotAccounts.reload(accountId);
      log.error({ shard: this.#shard, accountId }, message);
    }
  }
}

const next = (id: StreamId): StreamId => ({ ms: id.ms, seq: id.seq + 1 });

/** Parses a batch, and separates the entries that cannot be read. Pure. */
function parseBatch(shard: number, raw: readonly RawEntry[]): Batch {
  const entries: LedgerEntry[] = [];
  const unreadEntries: UnreadEntry[] = [];
  for (const [streamId, fields] of raw) {
    try {
      const entry = parseLedgerEntry(streamId, fields);
      if (shardOf(entry.event.accountId) !== shard)
        throw new UnreadableEntry('its account belongs to another shard');
      entries.push(entry);
      if (entry.damage === null) continue;
      unreadEntries.push({ streamId, accountId: readAccount(fields), reason: entry.damage, isCounted: true });
    } catch (error) {
      if (!(error instanceof UnreadableEntry)) throw error;
      const accountId = readAccount(fields);
      unreadEntries.push({ streamId, accountId, reason: error.message, isCounted: false });
    }
  }
  return { entries, unreadEntries, last: parseStreamId(raw.at(-1)![0]) };
}

/** Returns the shard's accounts that have an entry that is not applied. */
const findUncountedAccounts = (shard: number, unreadEntries: readonly UnreadEntry[]): ReadonlySet<string> =>
  new Set(
    unreadEntries.flatMap(({ accountId, isCounted }) =>
      accountId !== null && !isCounted && shardOf(accountId) === shard ? [accountId] : [],
    ),
  );
