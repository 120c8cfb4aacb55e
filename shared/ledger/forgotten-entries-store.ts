import type { AccountDocument } from '../accounts/account-store.ts';
import { callRedis, type RedisClient } from '../redis/redis-client.ts';
import { redisKeys, shardOf } from '../redis/redis-keys.ts';
import { LedgerConflict, toLedgerDocument, type LedgerDocument, type LedgerStore } from './ledger-store.ts';
import { formatStreamId, isAfter, parseLedgerEntry, type LedgerEntry, type StreamId } from './usage-event.ts';

/** Of a stream, read at once. */
const entriesPerRead = 500;

export const placeOf = ({ streamMs, streamSeq }: LedgerDocument): StreamId => ({
  ms: streamMs,
  seq: streamSeq,
});

/** Rows of a shard whose entries are not in its stream: they are trimmed, or Redis has forgotten them. */
export async function findMissing(
  redis: RedisClient,
  shard: number,
  rows: readonly LedgerDocument[],
): Promise<LedgerDocument[]> {
  const stream = redisKeys.ledgerStream(shard);
  const found = await callRedis(() =>
    Promise.all(
      rows.map((row) => {
        const id = formatStreamId(placeOf(row));
        return redis.xrange(stream, id, id);
      }),
    ),
  );
  return rows.filter((_, i) => found[i]!.length === 0);
}

/**
 * A reader that crashed may have left rows that the account's sums do not have. They are applied from the stream, unless
 * Redis has forgotten them since; then the rows are all there is, and they are summed here. With them is summed what
 * comes before them, also where it is still in the stream: sums hold all entries up to a place, and nobody goes back.
 * @returns whether there was anything to sum, so that the account has changed
 */
export async function sumForgotten(
  redis: RedisClient,
  ledger: LedgerStore,
  account: AccountDocument,
): Promise<boolean> {
  const { _id: id, appliedMs, appliedSeq } = account;
  const from = { ms: appliedMs, seq: appliedSeq };
  const missing = await findMissing(redis, shardOf(id), await ledger.findAfter([id], from));
  const last = missing.at(-1);
  if (last === undefined) return false;
  const to = placeOf(last);
  const waiting = await findEntries(redis, id, from, to);
  try {
    // Their other rows are for the reader, which finds these there already.
    await ledger.insertEntries(waiting.map(toLedgerDocument));
    const rows = await ledger.findAfter([id], from);
    await ledger.addRows(
      id,
      from,
      rows.filter((row) => !isAfter(placeOf(row), to)),
    );
  } catch (error) {
    // They were applied and trimmed since the account was read, or a new primary does not show them yet: who asked looks again.
    if (!(error instanceof LedgerConflict)) throw error;
  }
  return true;
}

/** Entries of an account in its shard's stream between two places. */
async function findEntries(
  redis: RedisClient,
  accountId: string,
  after: StreamId,
  before: StreamId,
): Promise<LedgerEntry[]> {
  const stream = redisKeys.ledgerStream(shardOf(accountId));
  const own: LedgerEntry[] = [];
  let from = formatStreamId(after);
  for (;;) {
    const start = `(${from}`;
    const end = `(${formatStreamId(before)}`;
    const raw = await callRedis(() => redis.xrange(stream, start, end, 'COUNT', entriesPerRead));
    for (const [id, fields] of raw) {
      const entry = parseLedgerEntry(id, fields);
      if (entry.event.accountId === accountId) own.push(entry);
    }
    if (raw.length < entriesPerRead) return own;
    from = raw[raw.length - 1]![0];
  }
}
