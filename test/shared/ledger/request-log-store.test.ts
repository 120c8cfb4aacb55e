import test, { type ExecutionContext } from 'ava';
import { RequestLogStore, type RequestLogFilter } from '../../../shared/ledger/request-log-store.ts';
import { startOfDay } from '../../../shared/ledger/days.ts';
import { PriceStore } from '../../../shared/ledger/price-store.ts';
import { maxCounted } from '../../../shared/ledger/request-list-store.ts';
import { requestRow } from '../../support/request-rows.ts';
import { useLedgerStore } from '../../support/use-ledger-store.ts';

const now = new Date('2026-11-28T12:00:00Z');
const reader = { accountId: 'ann' };
const run = <T>(read: () => Promise<T>): Promise<T> => read();

/** One request every 15 seconds, for 50 hours: more than are counted. */
const count = 12_000;
const stepMs = 15_000;
const firstMs = now.getTime() - count * stepMs;

async function useLog(t: ExecutionContext) {
  const { db, ledger } = await useLedgerStore(t, { requestLogDays: 3 });
  const rows = Array.from({ length: count }, (_, i) => {
    const at = new Date(firstMs + i * stepMs);
    return requestRow('ann', {
      _id: `r-${String(i).padStart(5, '0')}`,
      model: i % 2 === 0 ? 'chat' : 'image',
      at,
      settledAt: at,
      ordinal: i + 1,
      promptTokens: 2,
      costNano: 3n,
    });
  });
  await ledger.logs.insertMany(rows);
  const sums = {
    failures: 0,
    cacheReadTokens: 0,
    freeRequests: 0,
    vendorCostNano: 0n,
    costedRequests: 0,
    costedNano: 0n,
    appliedMs: 0,
    appliedSeq: 0,
  };
  await ledger.spend.ofAccounts.insertMany(
    ['2026-11-26', '2026-11-27', '2026-11-28'].flatMap((day) =>
      ['chat', 'image'].map((model) => {
        const requests = rows.filter(
          (row) => row.model === model && row.at.toISOString().startsWith(day),
        ).length;
        return {
          _id: `ann:${day}:${model}`,
          accountId: 'ann',
          model,
          day,
          ...sums,
          requests,
          rows: requests,
          promptTokens: 2 * requests,
          completionTokens: requests,
          costNano: 3n * BigInt(requests),
        };
      }),
    ),
  );
  const store = new RequestLogStore(ledger, new PriceStore(db), () => now);
  return { store, rows };
}

test('totals of more than 10 000 requests are exact with the sums of whole days, or say that they are not', async (t) => {
  const { store, rows } = await useLog(t);
  const read = async (filter: RequestLogFilter, page = 1) => {
    const { totals, isExact, totalCount, rows: found } = await store.readPage(reader, filter, page, 300);
    return { requests: totals.requests, costNano: totals.costNano, isExact, totalCount, rows: found.length };
  };
  const exactly = (requests: number, totalCount: number) => ({
    requests,
    costNano: 3n * BigInt(requests),
    isExact: true,
    totalCount,
    rows: 300,
  });
  t.deepEqual(await read({}), exactly(count, count));
  t.deepEqual(await read({ model: 'chat' }), exactly(count / 2, count / 2));
  const since = new Date(firstMs + stepMs * 1_000);
  const until = new Date('2026-11-28T11:00:00Z');
  const selected = rows.filter((row) => row.at >= since && row.at < until).length;
  t.true(selected > maxCounted);
  t.deepEqual(await read({ since, until }), exactly(selected, maxCounted));
  t.deepEqual(await read({ since }), exactly(count - 1_000, maxCounted));
  t.deepEqual(await read({ since: startOfDay('2026-11-27') }), exactly(8_640, 8_640));
  t.deepEqual(await read({ outcome: 'success' }), { ...exactly(maxCounted, maxCounted), isExact: false });
  // The last page ends with the last request that is counted; later ones are empty.
  t.is((await read({ outcome: 'success' }, 34)).rows, 100);
  t.is((await read({ outcome: 'success' }, 35)).rows, 0);
  // Without a filter, all pages are there.
  t.is((await read({}, 40)).rows, 300);

  const ids: string[] = [];
  for await (const page of store.readPages(reader, { model: 'image' }, 1_000, run))
    ids.push(...page.map(({ row }) => row._id));
  t.deepEqual(
    ids,
    rows
      .filter(({ model }) => model === 'image')
      .map(({ _id }) => _id)
      .toReversed(),
  );
  t.is(await store.count(reader, {}, 100_001), count);
  t.is(await store.count(reader, {}, 5_000), 5_000);
});
