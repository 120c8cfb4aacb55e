/** What some requests were, and what they cost the customer and the operator. */
export interface SpendSums {
  /** Lines of batches count one by one. */
  readonly requests: number;
  readonly failures: number;
  /** Of the request log. Those of a batch count instead of its lines. */
  readonly rows: number;
  readonly promptTokens: number;
  readonly cacheReadTokens: number;
  readonly completionTokens: number;
  readonly costNano: bigint;
  readonly freeRequests: number;
  /** What the vendors charge the operator, as far as it is known. */
  readonly vendorCostNano: bigint;
  /** The requests whose vendor cost is known, and what customers paid for them. */
  readonly costedRequests: number;
  readonly costedNano: bigint;
}

/** The fields that are sums. */
export const spendSums = [
  'requests',
  'failures',
  'rows',
  'promptTokens',
  'cacheReadTokens',
  'completionTokens',
  'costNano',
  'freeRequests',
  'vendorCostNano',
  'costedRequests',
  'costedNano',
] as const satisfies readonly (keyof SpendSums)[];

export const spendDimensions = ['account', 'upstream', 'model', 'day'] as const;
/** Unless a request says it. Sums by upstream are not kept by account. */
export const defaultDimensions = ['account', 'model', 'day'] as const;
/** How many days are summed unless a request says it. */
export const defaultSpendDays = 30;
/** The longest span of a request to the API. */
export const maxSpendDays = 366;
export type SpendDimension = (typeof spendDimensions)[number];

/** Sums are kept by account or by upstream, not by both. */
export const hasAccountAndUpstream = (
  filter: { readonly accountId?: string | undefined; readonly upstream?: string | undefined },
  by: ReadonlySet<SpendDimension>,
): boolean =>
  (filter.accountId !== undefined || by.has('account')) &&
  (filter.upstream !== undefined || by.has('upstream'));
export const noSumsOfBoth = 'or the filters name an account and an upstream: there are no sums by both';

/** Sums by some dimensions. The others are null. */
export interface SpendRow extends SpendSums {
  readonly account: string | null;
  /** What the account is called: its name, or else its address. */
  readonly name: string | null;
  readonly upstream: string | null;
  readonly model: string | null;
  readonly day: string | null;
}

type Summed = SpendSums & {
  readonly accountId?: string;
  readonly name?: string;
  readonly upstream?: string;
  readonly model: string;
  readonly day: string;
};
export type Sums = { -readonly [K in keyof SpendSums]: SpendSums[K] };

/**
 * Sums documents by some dimensions. Holds the sums of one account and day, so at most one row per model, and per upstream.
 * @param pages documents in the order of account and day, of those that are dimensions
 * @returns for each page the rows that it completes, which may be none; then the last rows
 */
export async function* sumSpend(
  pages: AsyncIterable<readonly Summed[]>,
  by: ReadonlySet<SpendDimension>,
): AsyncGenerator<SpendRow[]> {
  let current: Pick<SpendRow, 'account' | 'name' | 'day'> | null = null;
  let groups = new Map<string, Pick<SpendRow, 'upstream' | 'model'> & { readonly sums: Sums }>();
  const takeRows = (): SpendRow[] => {
    const rows = [...groups].sort(([one], [other]) => (one < other ? -1 : 1));
    groups = new Map();
    return current === null
      ? []
      : rows.map(([, { upstream, model, sums }]) => ({ ...current!, upstream, model, ...sums }));
  };
  for await (const page of pages) {
    const complete: SpendRow[] = [];
    for (const document of page) {
      const account = by.has('account') ? (document.accountId ?? null) : null;
      const day = by.has('day') ? document.day : null;
      if (current === null || current.account !== account || current.day !== day) {
        complete.push(...takeRows());
        current = { account, name: account === null ? null : (document.name ?? null), day };
      }
      const upstream = by.has('upstream') ? (document.upstream ?? null) : null;
      const model = by.has('model') ? document.model : null;
      const key = `${upstream ?? ''} ${model ?? ''}`;
      const group = groups.get(key);
      if (group === undefined) groups.set(key, { upstream, model, sums: pickSums(document) });
      else addSums(group.sums, pickSums(document));
    }
    yield complete;
  }
  yield takeRows();
}

/** Incrementing past 32 bits turns a count into an int64 in MongoDB, which is read as a bigint. */
const toNumber = (count: number | bigint): number => Number(count);

export const pickSums = (document: SpendSums): Sums => ({
  requests: toNumber(document.requests),
  failures: toNumber(document.failures),
  rows: toNumber(document.rows),
  promptTokens: toNumber(document.promptTokens),
  cacheReadTokens: toNumber(document.cacheReadTokens),
  completionTokens: toNumber(document.completionTokens),
  costNano: document.costNano,
  freeRequests: toNumber(document.freeRequests),
  vendorCostNano: document.vendorCostNano,
  costedRequests: toNumber(document.costedRequests),
  costedNano: document.costedNano,
});

export function addSums(sums: Sums, more: SpendSums): void {
  sums.requests += more.requests;
  sums.failures += more.failures;
  sums.rows += more.rows;
  sums.promptTokens += more.promptTokens;
  sums.cacheReadTokens += more.cacheReadTokens;
  sums.completionTokens += more.completionTokens;
  sums.costNano += more.costNano;
  sums.freeRequests += more.freeRequests;
  sums.vendorCostNano += more.vendorCostNano;
  sums.costedRequests += more.costedRequests;
  sums.costedNano += more.costedNano;
}
