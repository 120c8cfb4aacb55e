import { callRedis, RedisScript, type RedisClient } from '../redis/redis-client.ts';
import { redisKeys, shardOf } from '../redis/redis-keys.ts';
import { tryParseLedgerEntry, type LedgerEntry } from './usage-event.ts';

/**
 * Finds one account's refills among the stream entries before a position, newest first, and returns the id of the last
 * entry read.
 */
const script = new RedisScript(`
local found = {}
local entries = redis.call('XREVRANGE', KEYS[1], ARGV[2], '-', 'COUNT', ARGV[3])
for _, entry in ipairs(entries) do
  if entry[2][2] == 'refill' and entry[2][4] == ARGV[1] then found[#found + 1] = entry end
end
local isAll = #entries < tonumber(ARGV[3])
return {isAll and '' or entries[#entries][1], found}
`);

const entriesPerScan = 500;
/**
 * Together, these scans cover more entries than running readers ever leave in the stream. While all readers are down,
 * older entries are omitted.
 */
const maxScans = 10;

export type Refill = LedgerEntry & { readonly kind: 'refill' };

/** An account's codes redeemed after the one with this ordinal that have not reached MongoDB yet. */
export async function findRecentRefills(
  redis: RedisClient,
  accountId: string,
  lastOrdinal: number,
): Promise<Refill[]> {
  const keys = [redisKeys.ledgerStream(shardOf(accountId))];
  const refills: Refill[] = [];
  let before = '+';
  for (let scan = 1; scan <= maxScans; scan += 1) {
    const args = [accountId, before, entriesPerScan];
    const [last, found] = (await callRedis(() => script.run(redis, keys, args))) as [
      string,
      [string, string[]][],
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
