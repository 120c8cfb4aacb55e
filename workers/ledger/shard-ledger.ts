import {
  formatStreamId,
  parseLedgerEntry,
  type LedgerEntry,
  type StreamId,
} from '../../shared/ledger/usage-event.ts';
import { isLaterId } from '../../shared/ledger/wake-stream.ts';
import { RedisScript } from '../../shared/redis/redis-client.ts';
import { redisKeys } from '../../shared/redis/redis-keys.ts';
import { applyEntries } from './apply-entries.ts';
import { restoreForgotten, type RestoreForgottenDependencies } from './restore-forgotten.ts';

export const batchSize = 1_000;
/** An intent names no more accounts than this, unless one batch has more. */
const maxIntent = batchSize;

/**
 * Trims what is at rest, and remembers up to where, as restoring an account from MongoDB needs to know. A reader that was
 * paused and goes on where another has been further moves nothing back, and has to look at what the other left. A stream
 * without the last entry of what was read from it is one that forgot: then nothing is trimmed, so that what Redis remembers
 * says so.
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
 * Moves the stream of one shard to MongoDB, batch by batch, as long as nobody else does and nothing fails: what it knows
 * then holds no longer, and another one takes its place.
 *
 * Redis may come back with less than it had at any moment. Each batch is read together with what Redis remembers to have
 * trimmed, and is trimmed only if Redis still has it; so a loss shows before the next batch is applied, and what MongoDB
 * has of forgotten entries is summed before any later one is.
 */
export class ShardLedger {
  readonly #dependencies: RestoreForgottenDependencies;
  readonly #shard: number;
  /** Up to where Redis is known to remember what MongoDB has; null where that has to be looked for. */
  #remembered: string | null = null;
  /** Accounts that MongoDB has been told of: a batch of others is announced first. */
  #intent: ReadonlySet<string> = new Set();

  constructor(dependencies: RestoreForgottenDependencies, shard: number) {
    this.#dependencies = dependencies;
    this.#shard = shard;
  }

  /**
   * @returns how many entries were moved
   * @throws LedgerConflict where another reader was faster
   */
  async moveBatch(most = batchSize): Promise<number> {
    const { trimmed, entries } = await this.#read(most);
    // Whatever was not written here may be what a Redis remembers that came back with less than it had.
    if (trimmed !== this.#remembered) {
      this.#intent = await this.#dependencies.store.intents.read(this.#shard);
      this.#remembered = null;
      // What was read may be of before it: the next look reads it again.
      if (await restoreForgotten(this.#dependencies, this.#shard, trimmed, this.#intent)) return 0;
      this.#remembered = trimmed;
    }
    if (entries.length === 0) return 0;
    await this.#announce(entries);
    await this.#move(entries);
    return entries.length;
  }

  /** What is in the stream is not yet at rest: it is trimmed only after the checkpoint, so it is read from its start. */
  async #read(most: number): Promise<{ readonly trimmed: string; readonly entries: LedgerEntry[] }> {
    const answers = await this.#dependencies.redis
      .multi()
      .get(redisKeys.ledgerTrimmed(this.#shard))
      .xrange(redisKeys.ledgerStream(this.#shard), '-', '+', 'COUNT', most)
      .exec();
    const [trimmed, raw] = (answers ?? []).map(([error, value]) => {
      if (error !== null) throw error;
      return value;
    }) as [string | null, [string, string[]][]];
    return { trimmed: trimmed ?? '0-0', entries: raw.map(([id, fields]) => parseLedgerEntry(id, fields)) };
  }

  /** Most batches are of accounts that were announced already, and cost no write. */
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

  async #move(entries: readonly LedgerEntry[]): Promise<void> {
    const { redis, store } = this.#dependencies;
    const shard = this.#shard;
    const repeated = await applyEntries(store, entries);
    // Before anything is trimmed: where this fails, the batch is read again, and its repeated entries are found again.
    await this.#restoreRepeated(repeated);
    const last = entries[entries.length - 1]!.streamId;
    await store.writeCheckpoint(shard, last);
    const keys = [redisKeys.ledgerStream(shard), redisKeys.ledgerTrimmed(shard)];
    const args = [formatStreamId(last), formatStreamId(next(last))];
    this.#remembered = (await trimScript.run(redis, keys, args)) as string | null;
  }

  async #restoreRepeated(accountIds: ReadonlySet<string>): Promise<void> {
    if (accountIds.size === 0) return;
    const { store, hotAccounts, log } = this.#dependencies;
    // Entries of an account that is not there have no balance to move; `ledger verify` names them.
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
