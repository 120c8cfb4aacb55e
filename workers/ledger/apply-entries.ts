import { sumByDay } from '../../shared/ledger/account-sums-store.ts';
import type { Applied, SumsChange, SumsDocument } from '../../shared/ledger/add-to-sums.ts';
import { toDay } from '../../shared/ledger/days.ts';
import {
  toLedgerDocument,
  type DailyStatDocument,
  type LedgerStore,
} from '../../shared/ledger/ledger-store.ts';
import { toRefillLog } from '../../shared/ledger/refill-rows.ts';
import {
  allModels,
  type AccountSpendDocument,
  type ModelSpendDocument,
  type UpstreamSpendDocument,
} from '../../shared/ledger/spend-store.ts';
import type { SpendSums } from '../../shared/ledger/sum-spend.ts';
import { toRequestLog } from './to-request-log.ts';
import {
  firstStreamId,
  isAfter,
  lastUpstreamOf,
  type LedgerEntry,
  type StreamId,
  type UsageEvent,
} from '../../shared/ledger/usage-event.ts';
import { shardOf } from '../../shared/platform/redis/redis-keys.ts';

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
  const dated = charges.map(dateCharge);
  await Promise.all([
    applyToStats(store, dated),
    applyToAccountSpend(store, dated),
    applyToModelSpend(store, dated),
    applyToUpstreamSpend(store, dated),
  ]);
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
    const counted = newer.filter((entry) => !isRepeated.has(entry));
    const spentByDay = sumByDay(counted.filter((entry) => entry.kind === 'charge'));
    return [
      { id, from, to: lastOf(newer), balanceNano, addedNano, freeRequests, spentByDay, charges, codes },
    ];
  });
  await store.addToAccounts(changes);
}

type Charge = LedgerEntry & { kind: 'charge' };

/** A charge with its day in UTC, YYYY-MM-DD. */
interface DatedCharge {
  readonly entry: Charge;
  readonly day: string;
}

const dateCharge = (entry: Charge): DatedCharge => ({
  entry,
  day: toDay(new Date(entry.event.at)),
});

/** The row of a batch repeats what its lines have added. */
const isBatchRow = ({ totalNano }: Charge): boolean => totalNano !== null;

async function applyToStats(store: LedgerStore, charges: readonly DatedCharge[]): Promise<void> {
  const added = charges.filter(({ entry }) => !isBatchRow(entry));
  const byDay = groupBy(added, ({ entry, day }) => `${entry.event.accountId}:${day}`);
  const applied = await store.findStatsApplied([...byDay.keys()]);
  await store.addToStats(findChanges(byDay, applied, sumDay));
}

async function applyToAccountSpend(store: LedgerStore, charges: readonly DatedCharge[]): Promise<void> {
  const groups = groupBy(charges, ({ entry: { event }, day }) => `${event.accountId}:${day}:${event.model}`);
  const applied = await store.findAccountSpendApplied([...groups.keys()]);
  const toSums = (_id: string, group: readonly DatedCharge[]): AccountSpendDocument => {
    const { entry, day } = group[0]!;
    const { accountId, model } = entry.event;
    return { _id, accountId, model, day, ...sumSpending(group) };
  };
  await store.addToAccountSpend(findChanges(groups, applied, toSums));
}

/** Positions are those of one stream, so each shard has its own sums. */
async function applyToModelSpend(store: LedgerStore, charges: readonly DatedCharge[]): Promise<void> {
  const groupByModel = (modelOf: (event: UsageEvent) => string): Map<string, DatedCharge[]> =>
    groupBy(charges, ({ entry: { event }, day }) => `${shardOf(event.accountId)}:${day}:${modelOf(event)}`);
  const groups = new Map([...groupByModel(({ model }) => model), ...groupByModel(() => allModels)]);
  const applied = await store.findModelSpendApplied([...groups.keys()]);
  const toSums = (_id: string, group: readonly DatedCharge[]): ModelSpendDocument => {
    const { entry, day } = group[0]!;
    const shard = shardOf(entry.event.accountId);
    const model = _id.slice(`${shard}:${day}:`.length);
    return { _id, shard, model, day, ...sumSpending(group) };
  };
  await store.addToModelSpend(findChanges(groups, applied, toSums));
}

/** As for models. Charges without a call, and lines of batches, belong to no upstream. */
async function applyToUpstreamSpend(store: LedgerStore, charges: readonly DatedCharge[]): Promise<void> {
  const called = charges.filter(({ entry }) => lastUpstreamOf(entry.event) !== null);
  const prefixOf = ({ entry: { event }, day }: DatedCharge): string =>
    `${shardOf(event.accountId)}:${day}:${lastUpstreamOf(event)!} `;
  const groups = new Map([
    ...groupBy(called, (charge) => `${prefixOf(charge)}${charge.entry.event.model}`),
    ...groupBy(called, (charge) => `${prefixOf(charge)}${allModels}`),
  ]);
  const applied = await store.findUpstreamSpendApplied([...groups.keys()]);
  const toSums = (_id: string, group: readonly DatedCharge[]): UpstreamSpendDocument => {
    const { entry, day } = group[0]!;
    const model = _id.slice(prefixOf(group[0]!).length);
    const upstream = lastUpstreamOf(entry.event)!;
    return { _id, shard: shardOf(entry.event.accountId), upstream, model, day, ...sumSpending(group) };
  };
  await store.addToUpstreamSpend(findChanges(groups, applied, toSums));
}

/** Sums those charges of each group that its document does not include. */
function findChanges<T extends SumsDocument>(
  groups: ReadonlyMap<string, readonly DatedCharge[]>,
  applied: ReadonlyMap<string, StreamId>,
  toSums: (id: string, newer: readonly DatedCharge[]) => T,
): SumsChange<T>[] {
  return [...groups].flatMap(([id, group]) => {
    const from = applied.get(id) ?? null;
    const newer = group.filter(({ entry }) => isAfter(entry.streamId, from ?? firstStreamId));
    return newer.length === 0 ? [] : [{ from, sums: toSums(id, newer) }];
  });
}

function sumDay(_id: string, charges: readonly DatedCharge[]): DailyStatDocument {
  const { entry, day } = charges[0]!;
  const { requests, promptTokens, cacheReadTokens, completionTokens, costNano, freeRequests, ...rest } =
    sumSpending(charges);
  const { appliedMs, appliedSeq } = rest;
  return {
    _id,
    accountId: entry.event.accountId,
    day,
    requests,
    promptTokens,
    cacheReadTokens,
    completionTokens,
    costNano,
    freeRequests,
    appliedMs,
    appliedSeq,
  };
}

/** Sums charges, up to the last one. */
function sumSpending(charges: readonly DatedCharge[]): SpendSums & Applied {
  const last = charges.at(-1)!.entry.streamId;
  const sums = {
    requests: 0,
    failures: 0,
    rows: 0,
    promptTokens: 0,
    cacheReadTokens: 0,
    completionTokens: 0,
    costNano: 0n,
    freeRequests: 0,
    vendorCostNano: 0n,
    costedRequests: 0,
    costedNano: 0n,
    appliedMs: last.ms,
    appliedSeq: last.seq,
  };
  for (const { entry } of charges) {
    const { event, costNano } = entry;
    if (entry.ordinal > 0) sums.rows += 1;
    if (isBatchRow(entry)) continue;
    const requests = event.lines ?? 1;
    sums.requests += requests;
    sums.failures += countFailures(event);
    sums.promptTokens += event.promptTokens;
    sums.cacheReadTokens += event.cacheReadTokens ?? 0;
    sums.completionTokens += event.completionTokens;
    sums.costNano += costNano;
    sums.freeRequests += entry.free ? 1 : 0;
    if (event.vendorCostNano === undefined) continue;
    sums.vendorCostNano += BigInt(event.vendorCostNano);
    sums.costedRequests += requests;
    sums.costedNano += costNano;
  }
  return sums;
}

function countFailures({ lines, failedLines = 0, success }: UsageEvent): number {
  if (lines !== undefined) return failedLines;
  return success ? 0 : 1;
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
