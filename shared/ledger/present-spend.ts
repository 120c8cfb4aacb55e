import type { AdminSpend } from '../contract/admin-requests.ts';
import { writeCsvRow } from '../encoding/csv.ts';
import { formatRub, toRubNumber } from '../encoding/money.ts';
import { spendDimensions, type SpendDimension, type SpendRow } from './sum-spend.ts';

export function presentSpend(row: SpendRow): AdminSpend {
  const { vendorCostNano, marginNano } = findMargin(row);
  return {
    ...(row.account !== null && { account: row.account }),
    ...(row.upstream !== null && { upstream: row.upstream }),
    ...(row.model !== null && { model: row.model }),
    ...(row.day !== null && { day: row.day }),
    requests: row.requests,
    failures: row.failures,
    free_requests: row.freeRequests,
    prompt_tokens: row.promptTokens,
    cached_tokens: row.cacheReadTokens,
    completion_tokens: row.completionTokens,
    cost: toRubNumber(row.costNano),
    vendor_cost: vendorCostNano === null ? null : toRubNumber(vendorCostNano),
    margin: marginNano === null ? null : toRubNumber(marginNano),
    costed_requests: row.costedRequests,
  };
}

/** Both are null if no vendor cost is known. */
function findMargin({ costedRequests, costedNano, vendorCostNano }: SpendRow) {
  return costedRequests === 0
    ? { vendorCostNano: null, marginNano: null }
    : { vendorCostNano, marginNano: costedNano - vendorCostNano };
}

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
  ]);
}
