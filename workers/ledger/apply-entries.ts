import {
  toLedgerDocument,
  toRequestLog,
  type DailyStatDocument,
  type LedgerStore,
} from '../../shared/ledger/ledger-store.ts';
import { toRefillLog } from '../../shared/ledger/refill-rows.ts';
import { firstStreamId, isAfter, type LedgerEntry, type StreamId } from '../../shared/ledger/usage-event.ts';

/**
 * Writes one batch of a shard's stream in an order that makes every step repeatable. Rows come first, keyed by their
 * own IDs. The documents that hold sums follow; each records the last entry that it includes and only adds newer ones.
 * After a crash between two steps, or with a second reader that believes it holds the lease, work is repeated without
 * changing anything.
 * @returns the accounts of entries that were already written from another position in the stream: Redis lost them and
 * applied their amounts a second time. They are applied once here, so those accounts must be restored. Applying the
 * batch again returns the same accounts.
 */
export async function applyEntries(
  store: LedgerStore,
  all: readonly LedgerEntry[],
): Promise<ReadonlySet<string>> {
  const documents = all.map(toLedgerDocument);
  const repeated = await store.insertEntries(documents);
  const isRepeated = new Set(all.filter((_, i) => repeated.has(documents[i]!)));
  const entries = all.filter((entry) => !isRepeated.has(entry));
  const charges = entries.filter((entry) => entry.kind === 'charge');
  await store.insertLogs(charges.filter(({ ordinal }) => ordinal > 0).map(toRequestLog));
  const refills = entries.filter((entry) => entry.kind === 'refill');
  await store.insertRefillLogs(refills.flatMap((entry) => toRefillLog(entry) ?? []));
  await applyToAccounts(store, all, isRepeated);
  // The row of a batch repeats what its lines have added.
  await applyToStats(
    store,
    charges.filter(({ totalNano }) => totalNano === null),
  );
  return new Set([...isRepeated].map(({ event }) => event.accountId));
}

/**
 * Repeated entries are not added, but are still marked as applied; otherwise restoring the account would add them
 * from the stream.
 */
async function applyToAccounts(
  store: LedgerStore,
  entries: readonly LedgerEntry[],
  isRepeated: ReadonlySet<LedgerEntry>,
): Promise<void> {
  const byAccount = groupBy(entries, (entry) => entry.event.accountId);
  const applied = await store.findAppliedPositions([...byAccount.keys()]);
  const changes = [...byAccount].flatMap(([id, group]) => {
    const from = applied.get(id);
    // Entries of a missing account have no balance to change; `ledger verify` reports them.
    if (from === undefined) return [];
    const newer = group.filter((entry) => isAfter(entry.streamId, from));
    if (newer.length === 0) return [];
    let balanceNano = 0n;
    let addedNano = 0n;
    let freeRequests = 0;
    let charges = 0;
    let codes = 0;
    for (const entry of newer) {
      if (isRepeated.has(entry)) continue;
      if (entry.kind === 'refill') {
        balanceNano += entry.amountNano;
        freeRequests += entry.freeRequests;
        if (entry.amountNano > 0n) addedNano += entry.amountNano;
        codes = Math.max(codes, entry.ordinal ?? 0);
      } else {
        balanceNano -= entry.costNano;
        freeRequests -= entry.free ? 1 : 0;
        charges = Math.max(charges, entry.ordinal);
      }
    }
    return [{ id, from, to: lastOf(newer), balanceNano, addedNano, freeRequests, charges, codes }];
  });
  await store.addToAccounts(changes);
}

type Charge = LedgerEntry & { kind: 'charge' };

async function applyToStats(store: LedgerStore, charges: readonly Charge[]): Promise<void> {
  const dayOf = (entry: Charge): string => new Date(entry.event.at).toISOString().slice(0, 10);
  const byDay = groupBy(charges, (entry) => `${entry.event.accountId}:${dayOf(entry)}`);
  const applied = await store.findStatsApplied([...byDay.keys()]);
  const changes = [...byDay].flatMap(([id, group]) => {
    const from = applied.get(id) ?? null;
    const newer = group.filter((entry) => isAfter(entry.streamId, from ?? firstStreamId));
    if (newer.length === 0) return [];
    return [{ from, sums: sumDay(id, dayOf(newer[0]!), newer) }];
  });
  await store.addToStats(changes);
}

function sumDay(id: string, day: string, charges: readonly Charge[]): DailyStatDocument {
  const sum = (of: (entry: Charge) => number): number =>
    charges.reduce((total, entry) => total + of(entry), 0);
  const to = lastOf(charges);
  return {
    _id: id,
    accountId: charges[0]!.event.accountId,
    day,
    requests: sum((entry) => entry.event.lines ?? 1),
    promptTokens: sum((entry) => entry.event.promptTokens),
    cacheReadTokens: sum((entry) => entry.event.cacheReadTokens ?? 0),
    completionTokens: sum((entry) => entry.event.completionTokens),
    costNano: charges.reduce((total, entry) => total + entry.costNano, 0n),
    freeRequests: sum((entry) => (entry.free ? 1 : 0)),
    appliedMs: to.ms,
    appliedSeq: to.seq,
  };
}

function lastOf(entries: readonly LedgerEntry[]): StreamId {
  return entries[entries.length - 1]!.streamId;
}

function groupBy<T>(values: readonly T[], keyOf: (value: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>();
  for (const value of values) {
    const group = groups.get(keyOf(value));
    if (group === undefined) groups.set(keyOf(value), [value]);
    else group.push(value);
  }
  return groups;
}
