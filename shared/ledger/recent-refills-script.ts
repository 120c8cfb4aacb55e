// decision 0012
import { LuaScript } from '../platform/redis/lua-script.ts';
import { callRedis, type RedisClient } from '../platform/redis/redis-client.ts';
import { redisKeys, shardOf } from '../platform/redis/redis-keys.ts';
import { tryParseLedgerEntry, type LedgerEntry } from './usage-event.ts';

const script = new LuaScript(new URL('./find-refills.lua', import.meta.url), [
  'stream',
  'accountId',
  'before',
  'maxEntries',
]);

const entriesPerScan = 500;
/**
 * Together, these scans cover more entries than running readers ever leave in the stream. While all readers are down,
 * older entries are omitted.
 */
const maxScans = 10;

export type ListedRefill = LedgerEntry & { readonly kind: 'refill' };

/** An account's refills after the one with this ordinal that have not reached MongoDB yet. */
export async function findRecentRefills(
  redis: RedisClient,
  accountId: string,
  lastOrdinal: number,
): Promise<ListedRefill[]> {
  const stream = redisKeys.ledgerStream(shardOf(accountId));
  const refills: ListedRefill[] = [];
  let before = '+';
  for (let scan = 1; scan <= maxScans; scan += 1) {
    const values = { stream, accountId, before, maxEntries: entriesPerScan };
    const [last, found] = (await callRedis(() => script.run(redis, values))) as [
      last: string,
      entries: [id: string, fields: string[]][],
    ];
    for (const [id, fields] of found) {
      const entry = tryParseLedgerEntry(id, fields);
      if (entry?.kind !== 'refill' || entry.ordinal === null) continue;
      if (entry.ordinal > lastOrdinal) refills.push(entry);
      if (entry.ordinal <= lastOrdinal + 1) return refills;
    }
    if (last === '') break;
    before = `(${last}`;
  }
  return refills;
}
