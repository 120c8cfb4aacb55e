import { DeadLetters, type DeadLetter } from '../../shared/ledger/dead-letters.ts';
import {
  formatStreamId,
  parseLedgerEntry,
  parseStreamId,
  UnreadableEntry,
  type LedgerEntry,
  type StreamId,
} from '../../shared/ledger/usage-event.ts';
import { isLaterId } from '../../shared/ledger/wake-stream.ts';
import { RedisScript } from '../../shared/redis/redis-client.ts';
import { redisKeys } from '../../shared/redis/redis-keys.ts';
import { applyEntries } from './apply-entries.ts';
import { restoreForgotten, type RestoreForgottenDeps } from './restore-forgotten.ts';

export const batchSize = 1_000;

/** A stream ID, and a flat list of fields and values. */
type RawEntry = readonly [string, readonly string[]];

/** Maximum number of accounts in an intent, unless a single batch has more. */
const maxIntent = batchSize;

/**
 * Trims entries that are safely in MongoDB, and records the trim position, which is needed to restore an account from
 * MongoDB. A reader that was paused, and resumes after another one went further, does not move the position back, and
 * must check for lost data before its next batch. If the last entry that was read is missing from the stream, Redis
 * lost data. Then nothing is trimmed, so that the recorded position shows the loss.
 */
const trimScript = new RedisScript(`${isLaterId}
local isFurther = isLaterId(ARGV[1], redis.call('GET', KEYS[2]) or '0-0')
if isFurther then
  if #redis.call('XRANGE', KEYS[1], ARGV[1], ARGV[1]) == 0 then return false end
  redis.call('SET', KEYS[2], ARGV[1])
end
redis.call('XTRIM', KEYS[1], 'MINID', ARGV[2])
return isFurther and ARGV[1]
`);

/**
 * Moves the stream of one shard to MongoDB, batch by batch. Once another reader has moved a batch, or a call has
 * failed, its state is invalid, and a new instance must replace it.
 *
 * Redis may come back at any moment with less data than it had. Each batch is read together with the trim position
 * that Redis recorded, and is trimmed only if Redis still has it. So a loss is detected before the next batch is
 * applied, and lost entries that MongoDB has are summed before any later one.
 */
export class ShardLedger {
  readonly #dependencies: RestoreForgottenDeps;
  readonly #shard: number;
  readonly #deadLetters: DeadLetters;
  /** The trim position up to which Redis is known to match MongoDB; null if that must be checked. */
  #verifiedUpTo: string | null = null;
  /** Accounts announced to MongoDB. A batch with other accounts is announced first. */
  #intent: ReadonlySet<string> = new Set();

  constructor(dependencies: RestoreForgottenDeps, shard: number) {
    this.#dependencies = dependencies;
    this.#shard = shard;
    this.#deadLetters = new DeadLetters(dependencies.redis);
  }

  /**
   * Moves one batch.
   * @returns how many entries were moved
   * @throws LedgerConflict if another reader moved it first
   */
  async moveBatch(maxEntries = batchSize): Promise<number> {
    const { trimmed, raw } = await this.#read(maxEntries);
    // A trim position that was not written here may come from a Redis that lost data.
    if (trimmed !== this.#verifiedUpTo) {
      this.#intent = await this.#dependencies.store.intents.read(this.#shard);
      this.#verifiedUpTo = null;
      // The batch may date from before the restore, so the next call reads it again.
      if (await restoreForgotten(this.#dependencies, this.#shard, trimmed, this.#intent)) return 0;
      this.#verifiedUpTo = trimmed;
    }
    const last = raw.at(-1);
    if (last === undefined) return 0;
    const entries = await this.#parse(raw);
    await this.#announce(entries);
    await this.#move(entries, parseStreamId(last[0]));
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

  /**
   * Copies entries that cannot be read completely to the dead-letter stream, before the batch is moved and trimmed.
   * @returns the entries whose amounts can be read
   */
  async #parse(raw: readonly RawEntry[]): Promise<LedgerEntry[]> {
    const entries: LedgerEntry[] = [];
    for (const [streamId, fields] of raw) {
      try {
        const entry = parseLedgerEntry(streamId, fields);
        entries.push(entry);
        if (entry.damage === null) continue;
        await this.#addDeadLetter({ streamId, reason: entry.damage, isCounted: true, fields });
      } catch (error) {
        if (!(error instanceof UnreadableEntry)) throw error;
        await this.#addDeadLetter({ streamId, reason: error.message, isCounted: false, fields });
      }
    }
    return entries;
  }

  async #addDeadLetter(
    letter: Pick<DeadLetter, 'streamId' | 'reason' | 'isCounted' | 'fields'>,
  ): Promise<void> {
    const { log } = this.#dependencies;
    const { streamId, reason, isCounted, fields } = letter;
    const shard = this.#shard;
    const accountId = fields[2] === 'account' ? (fields[3] ?? null) : null;
    if (!(await this.#deadLetters.add({ ...letter, shard, accountId }))) return;
    log.error(
      { shard, streamId, accountId, reason },
      isCounted
        ? 'the event of a ledger entry cannot be read: its money is counted, the entry is in "admin ledger dead"'
        : 'a ledger entry cannot be read: its money is not counted in MongoDB until it is returned, see "admin ledger dead"',
    );
  }

  /** Most batches contain only accounts that were already announced and need no write. */
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

  /** @param last the end of the batch */
  async #move(entries: readonly LedgerEntry[], last: StreamId): Promise<void> {
    const { redis, store } = this.#dependencies;
    const shard = this.#shard;
    const repeated = await applyEntries(store, entries);
    // Do this before trimming: if it fails, the batch is read again and its repeated entries are found again.
    await this.#restoreRepeated(repeated);
    await store.writeCheckpoint(shard, last);
    const keys = [redisKeys.ledgerStream(shard), redisKeys.ledgerTrimmed(shard)];
    const args = [formatStreamId(last), formatStreamId(next(last))];
    this.#verifiedUpTo = (await trimScript.run(redis, keys, args)) as string | null;
  }

  async #restoreRepeated(accountIds: ReadonlySet<string>): Promise<void> {
    if (accountIds.size === 0) return;
    const { store, hotAccounts, log } = this.#dependencies;
    // Entries of a missing account have no balance to change; `ledger verify` reports them.
    for (const accountId of (await store.findAccountsApplied([...accountIds])).keys()) {
      await hotAccounts.reload(accountId);
      log.error(
        { shard: this.#shard, accountId },
        'Redis lost a balance change and made it again; the account is restored',
      );
    }
  }
}

const next = (id: StreamId): StreamId => ({ ms: id.ms, seq: id.seq + 1 });
