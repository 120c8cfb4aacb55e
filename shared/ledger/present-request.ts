import type { AdminAttempt, NamelessRequest } from '../contract/admin-requests.ts';
import { writeCsvRow } from '../encoding/csv.ts';
import { formatRub, toRubNumber } from '../encoding/money.ts';
import { outcomeOf, type LedgerDocument, type RequestLogDocument } from './ledger-store.ts';
import { listCharges, listVendorCharges, presentCharges } from './list-charges.ts';
import type { PricedRow } from './price-store.ts';
import { lastUpstreamOf, type RecordedCall } from './usage-event.ts';

/**
 * Presents a row of the request log to operators.
 * @param catalog for what the vendor charges by; null if it is not at hand
 */
export function presentRequest(
  priced: PricedRow,
  catalog: Parameters<typeof listVendorCharges>[1] | null,
): NamelessRequest {
  const { row } = priced;
  // Rows of release 0.1 have neither.
  const { calls = [], vendorCostNano = null } = row;
  const { callStartsMs = [], reasoningTokens = null, firstTokenMs = null } = row;
  const vendor = presentCharges(catalog === null ? null : listVendorCharges(row, catalog));
  return {
    id: row._id,
    account: row.accountId,
    created_at: row.at.toISOString(),
    is_expired: false,
    model: row.model === '' ? null : row.model,
    outcome: outcomeOf(row),
    status: row.responseCode,
    code: row.errorCode,
    details: row.details,
    upstream: lastUpstreamOf(row),
    attempts: calls.map((call, i) => presentCall(call, callStartsMs[i] ?? null)),
    prompt_tokens: row.promptTokens,
    cache_read_tokens: row.cacheReadTokens,
    completion_tokens: row.completionTokens,
    reasoning_tokens: reasoningTokens,
    images: row.images,
    lines: row.lines ?? null,
    estimated: row.counted,
    total_time: row.durationMs / 1_000,
    queued_ms: callStartsMs[0] ?? null,
    first_token_seconds: firstTokenMs === null ? null : firstTokenMs / 1_000,
    cost: toRubNumber(row.costNano),
    shortfall: toRubNumber(row.shortfallNano),
    vendor_cost: vendorCostNano === null ? null : toRubNumber(vendorCostNano),
    margin: vendorCostNano === null ? null : toRubNumber(row.costNano - vendorCostNano),
    ...presentCharges(listCharges(priced)),
    vendor_rates: vendor.rates,
    vendor_quantities: vendor.quantities,
    free: row.free,
    user: row.user,
    user_ip: row.userIp,
    idempotency_key: row.claimHash === undefined ? null : row.claimHash !== null,
    replays: null,
    price_version: row.isRejected === true ? null : row.priceVersion,
  };
}

function presentCall(call: RecordedCall, startedMs: number | null): AdminAttempt {
  const [upstream, durationMs, status, reason] = call.length === 2 ? [...call, 200, null] : call;
  return { upstream, status, reason, started_ms: startedMs, duration_ms: durationMs };
}

/** Presents a request whose row has been deleted, from its ledger entry. */
export function presentExpiredRequest(entry: LedgerDocument): NamelessRequest {
  return {
    id: entry._id,
    account: entry.accountId,
    created_at: entry.at.toISOString(),
    is_expired: true,
    model: null,
    outcome: null,
    status: null,
    code: null,
    details: null,
    upstream: null,
    attempts: [],
    prompt_tokens: null,
    cache_read_tokens: null,
    completion_tokens: null,
    reasoning_tokens: null,
    images: null,
    lines: null,
    estimated: null,
    total_time: null,
    queued_ms: null,
    first_token_seconds: null,
    cost: toRubNumber(-entry.amountNano),
    shortfall: toRubNumber(entry.shortfallNano),
    vendor_cost: null,
    margin: null,
    rates: null,
    quantities: null,
    vendor_rates: null,
    vendor_quantities: null,
    free: entry.freeRequests < 0,
    user: null,
    user_ip: null,
    idempotency_key: null,
    replays: null,
    price_version: entry.priceVersion,
  };
}

const csvColumns = [
  'id',
  'created_at',
  'account',
  'model',
  'outcome',
  'status',
  'code',
  'details',
  'upstream',
  'prompt_tokens',
  'cache_read_tokens',
  'completion_tokens',
  'reasoning_tokens',
  'images',
  'lines',
  'estimated',
  'total_time',
  'queued_ms',
  'first_token_seconds',
  'free',
  'user',
  'user_ip',
  'price_version',
] as const satisfies readonly (keyof NamelessRequest)[];

/** Yields a CSV file of requests, in a piece for each page. Money is exact. */
export async function* writeRequestsCsv(
  pages: AsyncIterable<readonly RequestLogDocument[]>,
): AsyncGenerator<string> {
  let text = writeCsvRow([...csvColumns, 'attempts', 'cost', 'shortfall', 'vendor_cost', 'margin']);
  for await (const rows of pages) {
    for (const row of rows) text += writeCsvRow(toCells(row));
    yield text;
    text = '';
  }
}

function toCells(row: RequestLogDocument): (string | number | null)[] {
  const presented = presentRequest({ row, pricing: null }, null);
  const { vendorCostNano = null, costNano, shortfallNano } = row;
  const format = (nano: bigint | null): string | null => (nano === null ? null : formatRub(nano));
  return [
    ...csvColumns.map((name) => {
      const value = presented[name];
      return typeof value === 'boolean' ? String(value) : value;
    }),
    // As `upstream status`, in their order.
    presented.attempts.map(({ upstream, status }) => `${upstream} ${status ?? '-'}`).join('; '),
    formatRub(costNano),
    formatRub(shortfallNano),
    format(vendorCostNano),
    format(vendorCostNano === null ? null : costNano - vendorCostNano),
  ];
}
