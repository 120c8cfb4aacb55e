import type { AdminAttempt, AdminRequest } from '../contract/admin-requests.ts';
import { toRubNumber } from '../encoding/money.ts';
import type { LedgerDocument, RequestLogDocument } from './ledger-store.ts';
import type { RecordedCall } from './usage-event.ts';

/** Presents a row of the request log to operators. */
export function presentRequest(row: RequestLogDocument): AdminRequest {
  // Rows of release 0.1 have neither.
  const { calls = [], vendorCostNano = null } = row;
  return {
    id: row._id,
    account: row.accountId,
    created_at: row.at.toISOString(),
    is_expired: false,
    model: row.model,
    outcome: row.success ? 'success' : 'error',
    status: row.responseCode,
    code: row.errorCode,
    details: row.details,
    upstream: calls.at(-1)?.[0] ?? null,
    attempts: calls.map(presentCall),
    prompt_tokens: row.promptTokens,
    cache_read_tokens: row.cacheReadTokens,
    completion_tokens: row.completionTokens,
    images: row.images,
    lines: row.lines ?? null,
    estimated: row.counted,
    total_time: row.durationMs / 1_000,
    cost: toRubNumber(row.costNano),
    shortfall: toRubNumber(row.shortfallNano),
    vendor_cost: vendorCostNano === null ? null : toRubNumber(vendorCostNano),
    margin: vendorCostNano === null ? null : toRubNumber(row.costNano - vendorCostNano),
    free: row.free,
    user: row.user,
    user_ip: row.userIp,
    price_version: row.priceVersion,
  };
}

function presentCall(call: RecordedCall): AdminAttempt {
  const [upstream, durationMs, status, reason] = call.length === 2 ? [...call, 200, null] : call;
  return { upstream, status, reason, duration_ms: durationMs };
}

/** Presents a request whose row has been deleted, from its ledger entry. */
export function presentExpiredRequest(entry: LedgerDocument): AdminRequest {
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
    images: null,
    lines: null,
    estimated: null,
    total_time: null,
    cost: toRubNumber(-entry.amountNano),
    shortfall: toRubNumber(entry.shortfallNano),
    vendor_cost: null,
    margin: null,
    free: entry.freeRequests < 0,
    user: null,
    user_ip: null,
    price_version: entry.priceVersion,
  };
}
