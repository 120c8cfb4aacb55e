import type { SpendOrder } from '../contract/admin-requests.ts';
import { addSums, pickSums, type SpendRow, type SpendSums, type Sums } from './sum-spend.ts';

export interface SpendRanking {
  readonly order: SpendOrder;
  /** Whether the smallest come first. Rows without a value come last in both directions. */
  readonly isAscending: boolean;
  readonly limit: number;
}

/** The first rows of an order. */
export interface RankedSpend {
  readonly rows: readonly SpendRow[];
  /** What all rows add up to. */
  readonly total: SpendSums;
  /** Of all rows. */
  readonly count: number;
}

const noSums: SpendSums = {
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
};

/**
 * Finds the first rows of an order and adds up all of them. Holds at most four times `limit` rows, and those of a page.
 * @returns null for each page; then the result
 */
export async function* rankSpend(
  pages: AsyncIterable<readonly SpendRow[]>,
  ranking: SpendRanking,
): AsyncGenerator<RankedSpend | null> {
  const compare = compareBy(ranking);
  const total: Sums = pickSums(noSums);
  let count = 0;
  let kept: SpendRow[] = [];
  for await (const page of pages) {
    for (const row of page) addSums(total, row);
    count += page.length;
    kept.push(...page);
    if (kept.length > 4 * ranking.limit) kept = kept.sort(compare).slice(0, ranking.limit);
    yield null;
  }
  yield { rows: kept.sort(compare).slice(0, ranking.limit), total, count };
}

type Rank = bigint | number | string | null;

const readRank: Readonly<Record<SpendOrder, (row: SpendRow) => Rank>> = {
  cost: ({ costNano }) => costNano,
  requests: ({ requests }) => requests,
  failures: ({ failures }) => failures,
  tokens: ({ promptTokens, completionTokens }) => promptTokens + completionTokens,
  vendor_cost: (row) => findMargin(row).vendorCostNano,
  margin: (row) => findMargin(row).marginNano,
  margin_share: (row) => findShare(row),
  day: ({ day }) => day,
};

function findShare(row: SpendRow): number | null {
  const { marginNano } = findMargin(row);
  return marginNano === null || row.costedNano === 0n ? null : Number(marginNano) / Number(row.costedNano);
}

/** What the vendors charge, and what is left of what customers paid. Both are null if no vendor cost is known. */
export function findMargin({ costedRequests, costedNano, vendorCostNano }: SpendSums) {
  return costedRequests === 0
    ? { vendorCostNano: null, marginNano: null }
    : { vendorCostNano, marginNano: costedNano - vendorCostNano };
}

function compareBy({ order, isAscending }: SpendRanking) {
  const read = readRank[order];
  return (one: SpendRow, other: SpendRow): number => {
    const [a, b] = [read(one), read(other)];
    if (a === null || b === null) return Number(a === null) - Number(b === null);
    if (a === b) return other.requests - one.requests;
    return a < b === isAscending ? -1 : 1;
  };
}
