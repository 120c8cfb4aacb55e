import test from 'ava';
import type { SpendOrder } from '../../../shared/contract/admin-requests.ts';
import { rankSpend } from '../../../shared/ledger/rank-spend.ts';
import type { SpendRow } from '../../../shared/ledger/sum-spend.ts';

/** @param costed whether the vendor cost is known */
const row = (model: string, cost: bigint, vendorCost: bigint, costed = true): SpendRow => ({
  account: null,
  name: null,
  upstream: null,
  model,
  day: null,
  requests: 1,
  failures: 0,
  rows: 1,
  promptTokens: 10,
  cacheReadTokens: 0,
  completionTokens: 1,
  costNano: cost,
  freeRequests: 0,
  vendorCostNano: costed ? vendorCost : 0n,
  costedRequests: costed ? 1 : 0,
  costedNano: costed ? cost : 0n,
});

async function rank(pages: readonly SpendRow[][], order: SpendOrder, limit: number, isAscending = false) {
  async function* read(): AsyncGenerator<SpendRow[]> {
    await Promise.resolve();
    yield* pages;
  }
  const all = [];
  for await (const ranked of rankSpend(read(), { order, isAscending, limit })) all.push(ranked);
  const last = all.at(-1)!;
  return { ...last, models: last.rows.map(({ model }) => model) };
}

test('the first rows of an order are found among all pages, and the total is exact and of all rows', async (t) => {
  const large = 9_007_199_254_740_993n;
  const pages = Array.from({ length: 50 }, (_, i) => [row(`m${i}`, large + BigInt((i * 37) % 50), 1n)]);
  const { models, total, count } = await rank(pages, 'cost', 2);
  const byCost = Array.from({ length: 50 }, (_, i) => i).sort((a, b) => ((b * 37) % 50) - ((a * 37) % 50));
  t.deepEqual(models, [`m${byCost[0]}`, `m${byCost[1]}`]);
  t.is(count, 50);
  t.is(total.costNano, 50n * large + (49n * 50n) / 2n);
  t.deepEqual((await rank([], 'cost', 2)).models, []);
});

test('rows without a value come last in both directions', async (t) => {
  const page = [
    row('loss', 1n, 3n),
    row('unknown', 100n, 0n, false),
    row('gain', 10n, 2n),
    row('thin', 50n, 41n),
  ];
  t.deepEqual((await rank([page], 'margin', 4)).models, ['thin', 'gain', 'loss', 'unknown']);
  t.deepEqual((await rank([page], 'margin', 4, true)).models, ['loss', 'gain', 'thin', 'unknown']);
  t.deepEqual((await rank([page], 'margin_share', 4)).models, ['gain', 'thin', 'loss', 'unknown']);
});
