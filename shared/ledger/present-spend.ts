import type { AdminSpend, AdminSpendTotal } from '../contract/admin-requests.ts';
import { writeCsvRow } from '../encoding/csv.ts';
import { formatRub, toRubNumber } from '../encoding/money.ts';
import { findMargin, rankSpend, type RankedSpend, type SpendRanking } from './rank-spend.ts';
import { spendDimensions, type SpendDimension, type SpendRow, type SpendSums } from './sum-spend.ts';

export function presentSpend(row: SpendRow): AdminSpend {
  const { vendorCostNano, marginNano } = findMargin(row);
  return {
    ...(row.account !== null && { account: row.account, name: row.name }),
    ...(row.upstream !== null && { upstream: row.upstream }),
    ...(row.model !== null && { model: row.model }),
    ...(row.day !== null && { day: row.day }),
    ...presentCounts(row),
    cost: toRubNumber(row.costNano),
    vendor_cost: vendorCostNano === null ? null : toRubNumber(vendorCostNano),
    margin: marginNano === null ? null : toRubNumber(marginNano),
  };
}

const presentCounts = (sums: SpendSums) => ({
  requests: sums.requests,
  failures: sums.failures,
  free_requests: sums.freeRequests,
  prompt_tokens: sums.promptTokens,
  cached_tokens: sums.cacheReadTokens,
  completion_tokens: sums.completionTokens,
  costed_requests: sums.costedRequests,
});

const formatNullable = (nano: bigint | null): string | null => (nano === null ? null : formatRub(nano));

/** Yields a JSON object, in a piece for each page, which may be empty. */
export async function* writeSpendJson(pages: AsyncIterable<readonly SpendRow[]>): AsyncGenerator<string> {
  let text = '{"data":[';
  let separator = '';
  for await (const rows of pages) {
    for (const row of rows) {
      text += separator + JSON.stringify(presentSpend(row));
      separator = ',';
    }
    yield text;
    text = '';
  }
  yield `${text}]}`;
}

/** Yields a JSON object with the first rows of an order, and what all rows add up to. Until all are read, it only begins. */
export async function* writeRankedSpendJson(
  pages: AsyncIterable<readonly SpendRow[]>,
  ranking: SpendRanking,
): AsyncGenerator<string> {
  let text = '{';
  for await (const ranked of rankSpend(pages, ranking)) {
    if (ranked !== null) text += presentRanked(ranked);
    yield text;
    text = '';
  }
}

const presentRanked = ({ rows, total, count }: RankedSpend): string =>
  `"data":${JSON.stringify(rows.map(presentSpend))},"total":${JSON.stringify(presentTotal(total, count))}}`;

function presentTotal(total: SpendSums, rows: number): AdminSpendTotal {
  const { vendorCostNano, marginNano } = findMargin(total);
  return {
    rows,
    ...presentCounts(total),
    cost: formatRub(total.costNano),
    vendor_cost: formatNullable(vendorCostNano),
    margin: formatNullable(marginNano),
  };
}

/** Yields a CSV file, in a piece for each page, which may be empty. Money is exact. */
export async function* writeSpendCsv(
  pages: AsyncIterable<readonly SpendRow[]>,
  by: ReadonlySet<SpendDimension>,
): AsyncGenerator<string> {
  const dimensions = spendDimensions.filter((name) => by.has(name));
  let text = writeCsvRow([
    ...dimensions,
    'requests',
    'failures',
    'free_requests',
    'prompt_tokens',
    'cached_tokens',
    'completion_tokens',
    'cost',
    'vendor_cost',
    'margin',
    'costed_requests',
    ...(by.has('account') ? ['name'] : []),
  ]);
  for await (const rows of pages) {
    for (const row of rows) text += writeRow(row, dimensions);
    yield text;
    text = '';
  }
  yield text;
}

function writeRow(row: SpendRow, dimensions: readonly SpendDimension[]): string {
  const { vendorCostNano, marginNano } = findMargin(row);
  return writeCsvRow([
    ...dimensions.map((name) => row[name]),
    row.requests,
    row.failures,
    row.freeRequests,
    row.promptTokens,
    row.cacheReadTokens,
    row.completionTokens,
    formatRub(row.costNano),
    formatNullable(vendorCostNano),
    formatNullable(marginNano),
    row.costedRequests,
    ...(dimensions.includes('account') ? [row.name] : []),
  ]);
}
