import { callRedis, type RedisClient } from '../platform/redis/redis-client.ts';
import { redisKeys, shardOf } from '../platform/redis/redis-keys.ts';
import { toAppliedAccount } from './account-sums-store.ts';
import { LedgerConflict } from './ledger-conflict.ts';
import { toLedgerDocument, type LedgerDocument, type LedgerStore } from './ledger-store.ts';
import type { LowBalance } from './low-balance.ts';
import {
  formatStreamId,
  isAfter,
  tryParseLedgerEntry,
  type LedgerEntry,
  type StreamId,
} from './usage-event.ts';

/** How many stream entries are read per command. */
const entriesPerRead = 500;

export const positionOf = ({ streamMs, streamSeq }: LedgerDocument): StreamId => ({
  ms: streamMs,
  seq: streamSeq,
});

/** Returns a shard's rows whose entries are not in its stream: they were trimmed, or Redis has lost them. */
export async function findMissing(
  redis: RedisClient,
  shard: number,
  rows: readonly LedgerDocument[],
): Promise<LedgerDocument[]> {
  const stream = redisKeys.ledgerStream(shard);
  const found = await callRedis(() =>
    Promise.all(
      rows.map((row) => {
        const id = formatStreamId(positionOf(row));
        return redis.xrange(stream, id, id);
      }),
    ),
  );
  return rows.filter((_, i) => found[i]!.length === 0);
}

/** An account, and the position up to which its sums include its entries. */
export interface SummedAccount {
  readonly _id: string;
  readonly appliedMs: number;
  readonly appliedSeq: number;
  readonly balanceNano: bigint;
  readonly lowBalanceNano?: bigint;
  readonly low?: LowBalance;
}

/**
 * Adds to an account's sums the ledger rows that a crashed reader inserted but did not add. Normally the stream still
 * has their entries, and the next reader adds those. If Redis has lost the entries, only the rows remain, so this adds
 * the rows. It also adds everything before them, even entries still in the stream, because sums include all entries up
 * to a position that never moves back.
 * @returns whether there was anything to add, in which case the account has changed
 */
export async function addMissingRows(
  redis: RedisClient,
  ledger: LedgerStore,
  account: SummedAccount,
): Promise<boolean> {
  const { _id: id } = account;
  const from = toAppliedAccount(account);
  const missing = await findMissing(redis, shardOf(id), await ledger.findAfter([id], from));
  const last = missing.at(-1);
  if (last === undefined) return false;
  const to = positionOf(last);
  const streamed = await findEntries(redis, id, from, to);
  try {
    // A reader processes these entries later, and finds their ledger documents already inserted.
    await ledger.insertEntries(streamed.map(toLedgerDocument));
    const rows = await ledger.findAfter([id], from);
    await ledger.addRows(
      id,
      from,
      rows.filter((row) => !isAfter(positionOf(row), to)),
    );
  } catch (error) {
    // The entries were applied and trimmed after the account was read, or a new primary does not show them yet. The
    // caller retries.
    if (!(error instanceof LedgerConflict)) throw error;
  }
  return true;
}

/** An account's entries in its shard's stream between two positions. */
async function findEntries(
  redis: RedisClient,
  accountId: string,
  after: StreamId,
  before: StreamId,
): Promise<LedgerEntry[]> {
  const stream = redisKeys.ledgerStream(shardOf(accountId));
  const entries: LedgerEntry[] = [];
  let from = formatStreamId(after);
  for (;;) {
    const start = `(${from}`;
    const end = `(${formatStreamId(before)}`;
    const raw = await callRedis(() => redis.xrange(stream, start, end, 'COUNT', entriesPerRead));
    for (const [id, fields] of raw) {
      const entry = tryParseLedgerEntry(id, fields);
      if (entry?.event.accountId === accountId) entries.push(entry);
    }
    if (raw.length < entriesPerRead) return entries;
    from = raw[raw.length - 1]![0];
  }
}
