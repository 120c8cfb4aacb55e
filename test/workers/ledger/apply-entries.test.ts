import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { LedgerConflict } from '../../../shared/ledger/ledger-conflict.ts';
import { LedgerStore } from '../../../shared/ledger/ledger-store.ts';
import { createRefillEvent, type LedgerEntry, type UsageEvent } from '../../../shared/ledger/usage-event.ts';
import { shardOf } from '../../../shared/platform/redis/redis-keys.ts';
import { createLogger } from '../../../shared/platform/runtime/logger.ts';
import { openMongo } from '../../../shared/platform/storage/mongo-client.ts';
import { applyEntries } from '../../../workers/ledger/apply-entries.ts';
import { openTestMongo } from '../../support/stores.ts';

const at = Date.UTC(2026, 10, 21, 12);
const modelDay = `${shardOf('a')}:2026-11-21:m`;

const charge = (ms: number, seq: number, costNano: bigint): LedgerEntry => ({
  kind: 'charge',
  damage: null,
  streamId: { ms, seq },
  costNano,
  shortfallNano: 0n,
  free: false,
  ordinal: seq + 1,
  totalNano: null,
  day: '2026-01-01',
  event: {
    v: 1,
    requestId: `r-${ms}-${seq}`,
    accountId: 'a',
    model: 'm',
    at,
    success: true,
    promptTokens: 3,
    completionTokens: 2,
    cacheReadTokens: null,
    priceVersion: 'p',
  } as UsageEvent,
});

const refill = (ms: number, seq: number, amountNano: bigint): LedgerEntry => ({
  kind: 'refill',
  damage: null,
  streamId: { ms, seq },
  amountNano,
  freeRequests: 1,
  ordinal: null,
  event: createRefillEvent(`f-${ms}-${seq}`, 'a', 'test'),
});

async function openStore(t: ExecutionContext) {
  const dir = await mkdtemp(join(tmpdir(), 'apply-'));
  const server = await openTestMongo({ dir });
  const mongo = openMongo(server.url, createLogger('test', 'silent'));
  t.teardown(async () => {
    await mongo.close();
    await server.close();
    await rm(dir, { recursive: true });
  });
  const store = new LedgerStore(mongo.db);
  await store.createIndexes();
  const accounts = mongo.db.collection<{ _id: string }>('accounts');
  return { mongo, store, accounts };
}

test('entries that are applied several times, in different batches and by concurrent readers, change the sums once', async (t) => {
  const { mongo, store, accounts } = await openStore(t);
  await accounts.insertOne({
    _id: 'a',
    balanceNano: 0n,
    totalAddedNano: 0n,
    freeRequests: 0,
    appliedMs: 0,
    appliedSeq: 0,
  } as never);
  // Ids are compared as numbers: 9 comes before 10.
  const entries = [refill(100, 9, 1_000n), charge(100, 10, 7n), charge(101, 0, 11n), charge(101, 1, 13n)];
  await applyEntries(store, entries.slice(0, 2));
  await applyEntries(store, entries.slice(0, 3));
  await Promise.allSettled([
    applyEntries(store, entries),
    applyEntries(store, entries),
    applyEntries(store, entries.slice(1)),
  ]);
  // A reader fails if another one applied entries first. Applying all entries once more changes nothing.
  await applyEntries(store, entries);
  t.like(await accounts.findOne({ _id: 'a' }), {
    balanceNano: 969n,
    totalAddedNano: 1_000n,
    freeRequests: 1,
    appliedMs: 101,
    appliedSeq: 1,
  });
  t.is(await store.entries.countDocuments({}), 4);
  t.is(await store.logs.countDocuments({}), 3);
  t.like(await mongo.db.collection<{ _id: string }>('daily_stats').findOne({ _id: 'a:2026-11-21' }), {
    requests: 3,
    promptTokens: 9,
    completionTokens: 6,
    costNano: 31n,
  });
  const spend = { model: 'm', day: '2026-11-21', requests: 3, failures: 0, rows: 3, costNano: 31n };
  t.like(await store.spend.ofAccounts.findOne({ _id: 'a:2026-11-21:m' }), { ...spend, accountId: 'a' });
  t.like(await store.spend.ofModels.findOne({ _id: modelDay }), { ...spend, shard: shardOf('a') });
  const ofAllModels = { _id: `${shardOf('a')}:2026-11-21:` };
  t.like(await store.spend.ofModels.findOne(ofAllModels), { ...spend, model: '' });
});

test('sums say what vendors charge, and for how many requests that is known', async (t) => {
  const { store } = await openStore(t);
  const withEvent = (entry: LedgerEntry, more: Partial<UsageEvent>): LedgerEntry =>
    ({ ...entry, event: { ...entry.event, ...more } }) as LedgerEntry;
  await applyEntries(store, [
    // Of an earlier release.
    charge(100, 0, 100n),
    withEvent(charge(100, 1, 10n), { vendorCostNano: '4' }),
    withEvent(charge(100, 2, 0n), { vendorCostNano: '3', success: false }),
  ]);
  t.like(await store.spend.ofAccounts.findOne({ _id: 'a:2026-11-21:m' }), {
    requests: 3,
    failures: 1,
    costNano: 110n,
    vendorCostNano: 7n,
    costedRequests: 2,
    costedNano: 10n,
  });
});

test('lines of a batch are summed one by one, and the row of the batch only counts as a row', async (t) => {
  const { store } = await openStore(t);
  const lines = { lines: 5, failedLines: 2, vendorCostNano: '6' };
  const settled = charge(100, 0, 10n) as LedgerEntry & { kind: 'charge' };
  const row = { ...settled, streamId: { ms: 101, seq: 0 }, ordinal: 1, costNano: 0n, totalNano: 10n };
  await applyEntries(store, [
    { ...settled, ordinal: 0, event: { ...settled.event, ...lines, requestId: 'batch/1.1/m' } },
    { ...row, event: { ...settled.event, lines: 5, vendorCostNano: '6', requestId: 'batch' } },
  ]);
  const sums = { requests: 5, failures: 2, rows: 1, costNano: 10n, vendorCostNano: 6n, costedRequests: 5 };
  t.like(await store.spend.ofAccounts.findOne({ _id: 'a:2026-11-21:m' }), sums);
  t.like(await store.spend.ofModels.findOne({ _id: modelDay }), sums);
  t.like(await store.logs.findOne({ _id: 'batch' }), { costNano: 10n, vendorCostNano: 6n });
});

test('if another reader applies entries first, a reader fails before it trims the stream, and its next attempt applies the rest', async (t) => {
  const { store, accounts } = await openStore(t);
  await accounts.insertOne({
    _id: 'a',
    balanceNano: 100n,
    totalAddedNano: 0n,
    freeRequests: 0,
    appliedMs: 0,
    appliedSeq: 0,
  } as never);
  const entries = [1, 2, 3, 4, 5].map((seq) => charge(100, seq, 1n));
  const read = store.findAppliedPositions.bind(store);
  // The other reader writes between the slow reader's read and write.
  store.findAppliedPositions = async (ids) => {
    const applied = await read(ids);
    store.findAppliedPositions = read;
    await applyEntries(store, entries.slice(0, 3));
    return applied;
  };
  await t.throwsAsync(applyEntries(store, entries), { instanceOf: LedgerConflict });
  await applyEntries(store, entries);
  t.like(await accounts.findOne({ _id: 'a' }), { balanceNano: 95n, appliedSeq: 5 });
});

test('every split of a stream into batches gives the same sums, even if all earlier entries are applied again after each batch', async (t) => {
  const { mongo, store, accounts } = await openStore(t);
  const empty = { balanceNano: 0n, totalAddedNano: 0n, freeRequests: 0, appliedMs: 0, appliedSeq: 0 };
  const entries = [
    refill(100, 1, 1_000n),
    ...Array.from({ length: 4 }, (_, i) => charge(100, i + 2, BigInt(i + 1))),
  ];
  for (let cuts = 0; cuts < 2 ** (entries.length - 1); cuts++) {
    await Promise.all(
      ['accounts', 'ledger', 'request_logs', 'daily_stats', 'account_spend', 'model_spend'].map((name) =>
        mongo.db.collection(name).deleteMany({}),
      ),
    );
    await accounts.insertOne({ _id: 'a', ...empty });
    let from = 0;
    for (let to = 1; to <= entries.length; to++) {
      if (to < entries.length && (cuts & (1 << (to - 1))) === 0) continue;
      await applyEntries(store, entries.slice(from, to));
      await applyEntries(store, entries.slice(0, to));
      from = to;
    }
    t.like(await accounts.findOne({ _id: 'a' }), {
      balanceNano: 990n,
      totalAddedNano: 1_000n,
      appliedSeq: 5,
    });
    t.is(await store.entries.countDocuments({}), 5);
    t.like(await store.stats.findOne({ _id: 'a:2026-11-21' }), { requests: 4, costNano: 10n });
    t.like(await store.spend.ofAccounts.findOne({ _id: 'a:2026-11-21:m' }), { requests: 4, costNano: 10n });
    t.like(await store.spend.ofModels.findOne({ _id: modelDay }), { requests: 4, costNano: 10n });
  }
});

test('if Redis loses a settlement and settles the request again, MongoDB applies its amounts once', async (t) => {
  const { store, accounts } = await openStore(t);
  await accounts.insertOne({
    _id: 'a',
    balanceNano: 100n,
    totalAddedNano: 0n,
    freeRequests: 0,
    appliedMs: 0,
    appliedSeq: 0,
  } as never);
  const first = charge(100, 1, 7n);
  await applyEntries(store, [first]);
  await applyEntries(store, [{ ...first, streamId: { ms: 200, seq: 0 } }]);
  t.is(await store.entries.countDocuments({}), 1);
  // The applied position includes the second stream id, so restoring the account does not apply that entry again.
  t.like(await accounts.findOne({ _id: 'a' }), { balanceNano: 93n, appliedMs: 200, appliedSeq: 0 });
  t.like(await store.stats.findOne({ _id: 'a:2026-11-21' }), { requests: 1, costNano: 7n });
});
