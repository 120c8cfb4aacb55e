import type { AccountStore } from '../../accounts/account-store.ts';
import type { Orphan, ReservationStore } from '../../money/reservation-store.ts';
import { DeadLetters } from '../../ledger/dead-letters-store.ts';
import type { LedgerStore, LedgerSums, RequestLogDocument } from '../../ledger/ledger-store.ts';
import type { PriceStore } from '../../ledger/price-store.ts';
import type { LedgerEntry } from '../../ledger/usage-event.ts';
import { formatRub } from '../../encoding/money.ts';
import type { RedisClient } from '../../platform/redis/redis-client.ts';
import { shardCount, shardOf } from '../../platform/redis/redis-keys.ts';
import { amountOf, checkAccount, type Difference } from './check-account.ts';
import { checkCost } from './check-cost.ts';
import { takeSnapshots, type SnapshotEffort } from './snapshot.ts';
import { liveness } from '../../platform/redis/liveness.ts';

export interface VerifyDeps {
  readonly redis: RedisClient;
  readonly accounts: AccountStore;
  readonly ledger: LedgerStore;
  readonly prices: PriceStore;
  readonly reservations: ReservationStore;
}

export interface VerifyOptions {
  /** Only this account. Null means all of them. */
  readonly account: string | null;
  readonly releaseOrphans: boolean;
  readonly onProgress: (accountsChecked: number) => void;
  /** By default, that of a command, which may take its time. */
  readonly effort?: SnapshotEffort;
}

export interface Verification {
  readonly accounts: number;
  readonly entries: number;
  /** The money of the account, if only one is checked. */
  readonly money?: AccountMoney;
  readonly differences: Difference[];
  /** Reservations without a request, released by this run. */
  readonly released: { request_id: string; account: string; reserved: string }[];
}

/** Sums of ledger entries in roubles, those included that are not in MongoDB yet. */
export interface AccountMoney {
  /** By codes, the sign-up grant and operators. */
  readonly added: string;
  /** By operators. */
  readonly taken_back: string;
  /** Charged for requests. */
  readonly spent: string;
  readonly balance: string;
}

const thorough: SnapshotEffort = { attempts: 50, pauseMs: 0 };
const chunkSize = 200;
const rowsPerCheck = 1_000;

/**
 * Verifies that the money of every account is the sum of its ledger, in MongoDB and in Redis. Changes nothing, except
 * that it releases orphans if requested. Work in progress causes no differences, because both sides are read
 * at the same moment.
 * @throws LedgerChanged if the ledger changes too fast to be read; the reason of the signal
 */
export async function verifyLedger(
  deps: VerifyDeps,
  { account, releaseOrphans, onProgress, effort = thorough }: VerifyOptions,
): Promise<Verification> {
  const verification: Verification = { accounts: 0, entries: 0, differences: [], released: [] };
  const shards = account === null ? Array.from({ length: shardCount }, (_, i) => i) : [shardOf(account)];
  for (const shard of shards) {
    await checkOrphans(deps.reservations, shard, account, releaseOrphans, verification);
    verification.differences.push(...(await listUncounted(deps.redis, shard, account)));
  }
  let checked = 0;
  let money: AccountMoney | undefined;
  for await (const [shard, ids] of listByShard(deps.accounts, account)) {
    await checkChunk(deps, shard, ids, effort, verification, (sums) => {
      money = sums;
    });
    checked += ids.length;
    onProgress(checked);
  }
  const { entries, differences, released } = verification;
  return {
    accounts: checked,
    entries,
    ...(account !== null && money !== undefined && { money }),
    differences,
    released,
  };
}

async function* listByShard(
  accounts: AccountStore,
  account: string | null,
): AsyncGenerator<[number, string[]]> {
  if (account !== null) {
    yield [shardOf(account), [account]];
    return;
  }
  const byShard = new Map<number, string[]>();
  for await (const { _id } of accounts.list()) {
    const shard = shardOf(_id);
    const ids = byShard.get(shard) ?? [];
    ids.push(_id);
    byShard.set(shard, ids);
    if (ids.length < chunkSize) continue;
    byShard.delete(shard);
    yield [shard, ids];
  }
  yield* byShard;
}

async function checkOrphans(
  reservations: ReservationStore,
  shard: number,
  account: string | null,
  shouldRelease: boolean,
  { differences, released }: Verification,
): Promise<void> {
  const { orphans, nowMs } = await reservations.findOrphans(shard);
  for (const orphan of orphans) {
    if (account !== null && orphan.accountId !== account) continue;
    if (shouldRelease) {
      if (await reservations.releaseOrphan(orphan)) released.push(describeOrphan(orphan));
    } else if (nowMs - orphan.heartbeatLostAtMs > liveness.orphan.releasedMs) {
      const { requestId: request_id, accountId, costNano } = orphan;
      const check = 'no reservation outlives its request';
      differences.push({ account: accountId, check, request_id, expected: '0', found: formatRub(costNano) });
    }
  }
}

/** Reports entries that no worker could read. Their amounts are missing from the balances. */
async function listUncounted(
  redis: RedisClient,
  shard: number,
  account: string | null,
): Promise<Difference[]> {
  const differences: Difference[] = [];
  for await (const { id, accountId, isCounted, reason } of new DeadLetters(redis).listShard(shard)) {
    if (isCounted || (account !== null && accountId !== account)) continue;
    const check = `the ledger entry ${shard}:${id} can be read`;
    differences.push({
      account: accountId ?? 'unknown',
      check,
      request_id: null,
      expected: 'yes',
      found: reason,
    });
  }
  return differences;
}

const describeOrphan = ({ requestId, accountId, costNano, free }: Orphan) => ({
  request_id: requestId,
  account: accountId,
  reserved: free ? 'a free request' : formatRub(costNano),
});

async function checkChunk(
  { redis, accounts, ledger, prices }: VerifyDeps,
  shard: number,
  ids: readonly string[],
  effort: SnapshotEffort,
  verification: { entries: number; differences: Difference[] },
  onMoney: (money: AccountMoney) => void,
): Promise<void> {
  for (const snapshot of await takeSnapshots(redis, accounts, shard, ids, effort)) {
    const { storedAccount, pending } = snapshot;
    effort.signal?.throwIfAborted();
    const sums = await ledger.sumApplied(storedAccount._id, {
      ms: storedAccount.appliedMs,
      seq: storedAccount.appliedSeq,
    });
    verification.entries += sums.entries + pending.length;
    verification.differences.push(...checkAccount(snapshot, sums));
    onMoney(sumMoney(sums, pending));
    verification.differences.push(...(await findDuplicates(ledger, storedAccount._id, pending)));
    let rows: RequestLogDocument[] = [];
    const checkRows = async (): Promise<void> => {
      effort.signal?.throwIfAborted();
      verification.differences.push(...(await checkCosts(ledger, prices, rows)));
      rows = [];
    };
    for await (const row of ledger.logs.find({ accountId: storedAccount._id })) {
      rows.push(row);
      if (rows.length === rowsPerCheck) await checkRows();
    }
    await checkRows();
  }
}

function sumMoney(
  { amountNano, addedNano, takenNano }: LedgerSums,
  pending: readonly LedgerEntry[],
): AccountMoney {
  let [balance, added, taken] = [amountNano, addedNano, takenNano];
  for (const entry of pending) {
    const amount = amountOf(entry);
    balance += amount;
    if (entry.kind === 'charge') continue;
    if (amount > 0n) added += amount;
    else taken -= amount;
  }
  return {
    added: formatRub(added),
    taken_back: formatRub(taken),
    spent: formatRub(added - taken - balance),
    balance: formatRub(balance),
  };
}

const idOf = (entry: LedgerEntry): string =>
  entry.kind === 'charge' ? entry.event.requestId : entry.event.refillId;

/**
 * Finds entries that are pending twice, or that are also in MongoDB under another stream id. MongoDB itself keeps ids
 * unique.
 */
async function findDuplicates(
  ledger: LedgerStore,
  account: string,
  pending: readonly LedgerEntry[],
): Promise<Difference[]> {
  const byId = new Map<string, LedgerEntry>();
  const duplicates: string[] = [];
  for (const entry of pending) {
    if (byId.has(idOf(entry))) duplicates.push(idOf(entry));
    byId.set(idOf(entry), entry);
  }
  for (const row of await ledger.findEntries([...byId.keys()])) {
    const { ms, seq } = byId.get(row._id)!.streamId;
    if (row.streamMs !== ms || row.streamSeq !== seq) duplicates.push(row._id);
  }
  const check = 'a request is in the ledger once';
  return duplicates.map((request_id) => ({ account, check, request_id, expected: '1', found: '2' }));
}

async function checkCosts(
  ledger: LedgerStore,
  prices: PriceStore,
  rows: readonly RequestLogDocument[],
): Promise<Difference[]> {
  const differences: Difference[] = [];
  const entries = await ledger.findEntries(rows.map((row) => row._id));
  const amounts = new Map(entries.map((entry) => [entry._id, entry.amountNano]));
  for (const row of rows) {
    const difference = checkCost(row, await prices.find(row.model, row.priceVersion));
    if (difference !== null) differences.push(difference);
    const isBatch = row.lines !== undefined;
    const amount = isBatch ? await ledger.sumLines(row._id, row.model) : amounts.get(row._id);
    if (amount !== -row.costNano) {
      const found = amount === undefined ? 'none' : formatRub(-amount);
      const common = {
        account: row.accountId,
        request_id: row._id,
        expected: formatRub(row.costNano),
        found,
      };
      differences.push({ ...common, check: 'the ledger matches the log' });
    }
  }
  return differences;
}
