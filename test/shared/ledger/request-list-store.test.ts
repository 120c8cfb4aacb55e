import test, { type ExecutionContext } from 'ava';
import { presentExpiredRequest, presentRequest } from '../../../shared/ledger/present-request.ts';
import {
  maxCounted,
  RequestListStore,
  UnknownPosition,
  type RequestFilter,
} from '../../../shared/ledger/request-list-store.ts';
import {
  LedgerStore,
  type LedgerDocument,
  type RequestLogDocument,
} from '../../../shared/ledger/ledger-store.ts';
import { startOfDay } from '../../../shared/ledger/days.ts';
import { countExamined } from '../../support/examined-documents.ts';
import { requestRow } from '../../support/request-rows.ts';
import { useLedgerStore } from '../../support/use-ledger-store.ts';

const now = startOfDay('2026-11-28');
now.setUTCHours(12);
const minuteMs = 60_000;
const dayMs = 24 * 60 * minuteMs;
const minutesAgo = (minutes: number): Date => new Date(now.getTime() - minutes * minuteMs);

async function useStore(t: ExecutionContext, rows: readonly RequestLogDocument[], requestLogDays = 30) {
  const { ledger, mongo, db } = await useLedgerStore(t, { requestLogDays });
  await ledger.insertLogs(rows);
  const store = new RequestListStore(ledger, () => now);
  const list = async (filter: RequestFilter): Promise<string[]> => {
    const ids: string[] = [];
    for await (const page of store.listPages(filter, 3)) ids.push(...page.map(({ _id }) => _id));
    return ids;
  };
  return { mongo, db, ledger, store, list };
}

test('pages list requests by account, model, outcome and time, newest first, each once', async (t) => {
  const rows = Array.from({ length: 60 }, (_, i) =>
    requestRow(i % 2 === 0 ? 'ann' : 'bob', {
      _id: `r-${String(i).padStart(2, '0')}`,
      model: i % 3 === 0 ? 'chat' : 'image',
      success: i % 5 !== 0,
      // Several requests at the same moment: their order is that of their ids.
      at: minutesAgo(Math.floor(i / 4)),
    }),
  );
  const { list } = await useStore(t, rows);
  const newestFirst = rows.toSorted((a, b) => b.at.getTime() - a.at.getTime() || (a._id < b._id ? 1 : -1));
  const filters: RequestFilter[] = [];
  for (const accountId of [undefined, 'ann'])
    for (const model of [undefined, 'chat'])
      for (const outcome of [undefined, 'success', 'error'] as const)
        for (const since of [undefined, minutesAgo(9)])
          for (const until of [undefined, minutesAgo(3)])
            filters.push({ accountId, model, outcome, since, until });
  for (const filter of filters) {
    const expected = newestFirst.filter(
      (row) =>
        (filter.accountId === undefined || row.accountId === filter.accountId) &&
        (filter.model === undefined || row.model === filter.model) &&
        (filter.outcome === undefined || row.success === (filter.outcome === 'success')) &&
        (filter.since === undefined || row.at >= filter.since) &&
        (filter.until === undefined || row.at < filter.until),
    );
    t.deepEqual(
      await list(filter),
      expected.map(({ _id }) => _id),
      JSON.stringify(filter),
    );
  }
});

test('a page says whether there are more, and begins after any request, also one that the filter leaves out', async (t) => {
  const rows = [1, 2, 3].map((i) => requestRow('ann', { _id: `r-${i}`, at: minutesAgo(i) }));
  const other = requestRow('bob', { _id: 'other', at: minutesAgo(1.5) });
  const { store } = await useStore(t, [...rows, other]);
  const idsOf = async (limit: number, after?: string) => {
    const { rows: found, hasMore } = await store.list({ accountId: 'ann' }, limit, after);
    return [found.map(({ _id }) => _id), hasMore];
  };
  t.deepEqual(await idsOf(2), [['r-1', 'r-2'], true]);
  t.deepEqual(await idsOf(3), [['r-1', 'r-2', 'r-3'], false]);
  t.deepEqual(await idsOf(2, 'other'), [['r-2', 'r-3'], false]);
  t.deepEqual(await idsOf(2, 'r-3'), [[], false]);
  await t.throwsAsync(store.list({}, 2, 'deleted'), { instanceOf: UnknownPosition });
});

test('requests of whole days are counted by the daily sums; others up to 10 000', async (t) => {
  const { store, ledger, db } = await useStore(t, [
    requestRow('ann', { at: minutesAgo(1) }),
    requestRow('ann', { at: minutesAgo(2), success: false }),
  ]);
  const sums = {
    requests: 0,
    failures: 0,
    promptTokens: 0,
    cacheReadTokens: 0,
    completionTokens: 0,
    costNano: 0n,
    freeRequests: 0,
    vendorCostNano: 0n,
    costedRequests: 0,
    costedNano: 0n,
    appliedMs: 0,
    appliedSeq: 0,
  };
  await ledger.spend.ofAccounts.insertMany(
    ['2026-11-27', '2026-11-28'].map((day) => ({
      _id: `ann:${day}:chat`,
      accountId: 'ann',
      model: 'chat',
      day,
      rows: 20_000,
      ...sums,
    })),
  );
  const filter = { accountId: 'ann', model: 'chat' };
  t.deepEqual(await store.count(filter), { count: 40_000, isExact: true });
  t.deepEqual(await store.count({ ...filter, since: startOfDay('2026-11-28') }), {
    count: 20_000,
    isExact: true,
  });
  t.deepEqual(await store.count({ ...filter, until: startOfDay('2026-11-28') }), {
    count: 20_000,
    isExact: true,
  });
  t.deepEqual(await store.count({ ...filter, since: minutesAgo(1) }), { count: 1, isExact: true });
  t.deepEqual(await store.count({ ...filter, outcome: 'error' }), { count: 1, isExact: true });
  const many = Array.from({ length: maxCounted + 1 }, () => requestRow('bob', { at: minutesAgo(3) }));
  await db.collection<RequestLogDocument>('request_logs').insertMany(many);
  t.deepEqual(await store.count({ outcome: 'success' }), { count: maxCounted, isExact: false });
});

test('lists begin with the first day of the retention none of whose rows are deleted', async (t) => {
  const rows = [
    requestRow('ann', { _id: 'first', at: startOfDay('2026-11-26') }),
    requestRow('ann', { _id: 'before', at: new Date(startOfDay('2026-11-26').getTime() - 1) }),
  ];
  const { list, store } = await useStore(t, rows, 3);
  t.deepEqual(await list({}), ['first']);
  t.deepEqual(await list({ since: startOfDay('2026-01-01') }), ['first']);
  t.is((await store.find('before'))?.row?._id, 'before');
});

test('a request is found by its id as long as its ledger entry exists, which says what it cost', async (t) => {
  const row = requestRow('ann', {
    _id: 'kept',
    success: false,
    responseCode: 502,
    errorCode: 'upstream_error',
    details: 'The model is unavailable.',
    calls: [
      ['first', 12, 503, 'overloaded'],
      ['second', 40, null, 'no response in time'],
    ],
    costNano: 0n,
    vendorCostNano: 5n,
  });
  const { store, ledger } = await useStore(t, [row]);
  const entry: LedgerDocument = {
    _id: 'expired',
    kind: 'charge',
    accountId: 'ann',
    at: minutesAgo(0),
    amountNano: -1_500_000_000n,
    freeRequests: 0,
    shortfallNano: 0n,
    priceVersion: 'p',
    ordinal: 1,
    streamMs: 1,
    streamSeq: 0,
  };
  await ledger.insertEntries([
    entry,
    { ...entry, _id: 'refill', kind: 'refill', amountNano: 5n, streamSeq: 1 },
  ]);
  t.like(presentRequest({ row: (await store.find('kept'))!.row!, pricing: null }, null), {
    id: 'kept',
    account: 'ann',
    outcome: 'error',
    status: 502,
    code: 'upstream_error',
    details: 'The model is unavailable.',
    upstream: 'second',
    attempts: [
      { upstream: 'first', status: 503, reason: 'overloaded', duration_ms: 12 },
      { upstream: 'second', status: null, reason: 'no response in time', duration_ms: 40 },
    ],
    vendor_cost: 5e-9,
    margin: -5e-9,
  });
  t.like(presentExpiredRequest((await store.find('expired'))!.entry!), {
    id: 'expired',
    account: 'ann',
    is_expired: true,
    cost: 1.5,
    model: null,
  });
  t.is(await store.find('refill'), null);
  t.is(await store.find('unknown'), null);
});

test('a row of an earlier release is shown without attempts and vendor cost', async (t) => {
  const { store } = await useStore(t, [requestRow('ann', { _id: 'old', at: minutesAgo(1) })]);
  const { rows } = await store.list({}, 10);
  t.like(presentRequest({ row: rows[0]!, pricing: null }, null), {
    id: 'old',
    upstream: null,
    attempts: [],
    vendor_cost: null,
    margin: null,
    lines: null,
  });
});

test('the retention follows the setting at start, also when it changes', async (t) => {
  const { db, ledger } = await useLedgerStore(t, { requestLogDays: 30 });
  const readSeconds = async (): Promise<number> => {
    const indexes = await ledger.logs.listIndexes().toArray();
    return Number(indexes.find(({ name }) => name === 'settledAt_1')!.expireAfterSeconds);
  };
  t.is(await readSeconds(), (30 * dayMs) / 1_000);
  for (const requestLogDays of [7, 90, 90]) {
    await new LedgerStore(db, { requestLogDays }).createIndexes();
    t.is(await readSeconds(), (requestLogDays * dayMs) / 1_000);
  }
});

test('a page of an upstream, also of one account, reads its own rows, however many others are newer', async (t) => {
  const many = Array.from({ length: 2_000 }, (_, i) => {
    const upstream = i % 50 === 0 ? 'rare' : 'usual';
    const account = i % 400 === 0 || upstream === 'usual' ? 'ann' : 'bob';
    return requestRow(account, { upstream, success: i % 100 !== 0, at: minutesAgo(i / 10) });
  });
  const { mongo, store } = await useStore(t, many);
  for (const [filter, count] of [
    [{ upstream: 'rare' }, 40],
    [{ upstream: 'rare', accountId: 'ann' }, 5],
  ] as const) {
    t.is((await store.list(filter, 100)).rows.length, count);
    const { documents } = await countExamined(mongo, () => store.list(filter, 100));
    t.true(documents <= count, `${documents} documents`);
    t.deepEqual(await store.count(filter), { count, isExact: true });
  }
});
