import { DeadLetters, type DeadLetter } from '../../shared/ledger/dead-letters.ts';
import {
  formatStreamId,
  parseLedgerEntry,
  parseStreamId,
  UnreadableEntry,
  type LedgerEntry,
  type StreamId,
} from '../../shared/ledger/usage-event.ts';
import { isLaterId } from '../../shared/ledger/advance-stream.ts';
import { RedisScript } from '../../shared/redis/redis-client.ts';
import { redisKeys } from '../../shared/redis/redis-keys.ts';
import { applyEntries } from './apply-entries.ts';
import { restoreForgotten, type RestoreForgottenDeps } from './restore-forgotten.ts';

export const batchSize = 1_000;

/** A stream id, and the fields and values in turn. */
type RawEntry = readonly [string, readonly string[]];

/** The most accounts that an intent names, unless a single batch has more. */
const maxIntent = batchSize;

/**
 * Trims entries that are safely in MongoDB, and records up to where, because restoring an account from MongoDB
 * needs that. A reader that was paused and resumes after another one went further moves nothing back, and must
 * check what the other left. If the stream lacks the last entry that was read from it, Redis lost data. Then
 * nothing is trimmed, so that the recorded position shows the loss.
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
 * Moves the stream of one shard to MongoDB, batch by batch, as long as no other reader does and nothing fails.
 * After that its state is invalid, and a new instance must replace it.
 *
 * Redis may come back at any moment with less than it had. Each batch is read together with the trim position
 * that Redis recorded, and is trimmed only if Redis still has it. So a loss shows before the next batch is
 * applied, and lost entries that MongoDB has are summed before any later one.
 */
export class ShardLedger {
  readonly #dependencies: RestoreForgottenDeps;
  readonly #shard: number;
  readonly #deadLetters: DeadLetters;
  /** Up to where Redis is known to have what MongoDB has; null if that must be checked. */
  #remembered: string | null = null;
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
   * @throws LedgerConflict if another reader was faster
   */
  async moveBatch(most = batchSize): Promise<number> {
    const { trimmed, raw } = await this.#read(most);
    // A trim position that was not written here may come from a Redis that lost data.
    if (trimmed !== this.#remembered) {
      this.#intent = await this.#dependencies.store.intents.read(this.#shard);
      this.#remembered = null;
      // The batch may date from before the restore, so the next call reads it again.
      if (await restoreForgotten(this.#dependencies, this.#shard, trimmed, this.#intent)) return 0;
      this.#remembered = trimmed;
    }
    const last = raw.at(-1);
    if (last === undefined) return 0;
    const entries = await this.#parse(raw);
    await this.#announce(entries);
    await this.#move(entries, parseStreamId(last[0]));
    return raw.length;
  }

  /**
   * Reads from the start of the stream. Entries are trimmed only after the checkpoint, so everything in it is
   * still to be moved.
   */
  async #read(most: number): Promise<{ readonly trimmed: string; readonly raw: readonly RawEntry[] }> {
    const answers = await this.#dependencies.redis
      .multi()
      .get(redisKeys.ledgerTrimmed(this.#shard))
      .xrange(redisKeys.ledgerStream(this.#shard), '-', '+', 'COUNT', most)
      .exec();
    const [trimmed, raw] = (answers ?? []).map(([error, value]) => {
      if (error !== null) throw error;
      return value;
    }) as [string | null, RawEntry[]];
    return { trimmed: trimmed ?? '0-0', raw };
  }

  /**
   * Copies what cannot be read completely to the dead-letter stream, before the batch is moved and trimmed.
   * @returns the entries whose money can be read
   */
  async #parse(raw: readonly RawEntry[]): Promise<LedgerEntry[]> {
    const entries: LedgerEntry[] = [];
    for (const [streamId, fields] of raw) {
      try {
        const entry = parseLedgerEntry(streamId, fields);
        entries.push(entry);
        if (entry.damage === null) continue;
        await this.#bury({ streamId, reason: entry.damage, isCounted: true, fields });
      } catch (error) {
        if (!(error instanceof UnreadableEntry)) throw error;
        await this.#bury({ streamId, reason: error.message, isCounted: false, fields });
      }
    }
    return entries;
  }

  async #bury(letter: Pick<DeadLetter, 'streamId' | 'reason' | 'isCounted' | 'fields'>): Promise<void> {
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

  /** Most batches hold only accounts that were already announced, and cost no write. */
  async #announce(entries: readonly LedgerEntry[]): Promise<void> {
    const own = new Set(entries.map((entry) => entry.event.accountId));
    const added = [...own].filter((id) => !this.#intent.has(id));
    if (added.length === 0) return;
    const { intents } = this.#dependencies.store;
    if (this.#intent.size + added.length <= maxIntent) {
      await intents.add(this.#shard, added);
      this.#intent = new Set([...this.#intent, ...added]);
    } else {
      await intents.replace(this.#shard, [...own]);
      this.#intent = own;
    }
  }

  /** @param last the end of the batch */
  async #move(entries: readonly LedgerEntry[], last: StreamId): Promise<void> {
    const { redis, store } = this.#dependencies;
    const shard = this.#shard;
    const repeated = await applyEntries(store, entries);
    // Comes before trimming: if it fails, the batch is read again and its repeated entries are found again.
    await this.#restoreRepeated(repeated);
    await store.writeCheckpoint(shard, last);
    const keys = [redisKeys.ledgerStream(shard), redisKeys.ledgerTrimmed(shard)];
    const args = [formatStreamId(last), formatStreamId(next(last))];
    this.#remembered = (await trimScript.run(redis, keys, args)) as string | null;
  }

  async #restoreRepeated(accountIds: ReadonlySet<string>): Promise<void> {
    if (accountIds.size === 0) return;
    const { store, hotAccounts, log } = this.#dependencies;
    // Entries of a missing account have no balance to move; `ledger verify` reports them.
    for (const accountId of (await store.findAccountsApplied([...accountIds])).keys()) {
      await hotAccounts.reload(accountId);
      log.error(
        { shard: this.#shard, accountId },
        'Redis moved money again that it had forgotten; the account is restored',
      );
    }
  }
}

const next = (id: StreamId): StreamId => ({ ms: id.ms, seq: id.seq + 1 });
