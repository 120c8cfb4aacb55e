// decision 0100
import { chargeUnits } from '../../../shared/catalog/charge-units.ts';
import { writeCsvRow } from '../../../shared/encoding/csv.ts';
import { formatRub, toRubNumber } from '../../../shared/encoding/money.ts';
import type { RequestLogDocument } from '../../../shared/ledger/ledger-store.ts';
import { listCharges, presentCharges } from '../../../shared/ledger/list-charges.ts';
import type { PricedRow } from '../../../shared/ledger/price-store.ts';
import type { RequestLog, RequestTotals } from '../../contract/request-logs.ts';
import { describePage, writePage } from '../../responses/write-page.ts';
import type { RequestLogPage, RequestTotals as Totals } from '../../../shared/ledger/request-log-store.ts';

/** Yields the JSON of a page. */
export const writeRequestLogs = (
  { totalCount, rows, totals, isExact }: RequestLogPage,
  page: number,
  pageSize: number,
): Iterable<string> =>
  writePage(
    {
      ...describePage(totalCount, page, pageSize),
      totals: presentTotals(totals),
      has_exact_total: isExact,
    },
    rows,
    presentRequestLog,
  );

const presentTotals = ({ requests, promptTokens, completionTokens, costNano }: Totals): RequestTotals => ({
  requests,
  prompt_tokens: promptTokens,
  completion_tokens: completionTokens,
  cost: toRubNumber(costNano),
});

function presentRequestLog(priced: PricedRow): RequestLog {
  const { row } = priced;
  const charges = listCharges(priced);
  const { reasoningTokens, firstTokenMs } = row;
  return {
    created_at: row.at.toISOString(),
    success: row.success,
    response_code: row.responseCode,
    request_id: row._id,
    details: describeOutcome(row),
    user_ip: row.userIp,
    model_name: row.model,
    prompt_tokens: row.promptTokens,
    cache_read_tokens: row.cacheReadTokens,
    completion_tokens: row.completionTokens,
    reasoning_tokens: reasoningTokens ?? null,
    total_time: row.durationMs / 1_000,
    first_token_seconds: toSeconds(firstTokenMs),
    idempotency_key: row.claimHash === undefined ? null : row.claimHash !== null,
    cost_request: toRubNumber(row.costNano),
    ...presentCharges(charges),
    shortfall: toRubNumber(row.shortfallNano),
    free_requests: row.free,
    is_free_request: row.free,
    estimated: row.counted,
  };
}

const describeOutcome = ({ success, errorCode, details }: RequestLogDocument): string | null =>
  success ? details : `${errorCode ?? 'internal_error'}: ${details ?? ''}`;

/** Rows of earlier releases have no time of the first output. */
const toSeconds = (ms: number | null | undefined): number | null =>
  ms === null || ms === undefined ? null : ms / 1_000;

/** Yields a CSV file, in a piece for each page. Money is exact. */
export async function* writeRequestLogsCsv(
  pages: AsyncIterable<readonly PricedRow[]>,
): AsyncGenerator<string> {
  let text = writeCsvRow([
    'created_at',
    'request_id',
    'model_name',
    'success',
    'response_code',
    'details',
    'prompt_tokens',
    'cache_read_tokens',
    'completion_tokens',
    'reasoning_tokens',
    'total_time',
    'first_token_seconds',
    'cost_request',
    'shortfall',
    'free_requests',
    'estimated',
    'user_ip',
    ...chargeUnits.flatMap((unit) => [`rate_${unit}`, `quantity_${unit}`]),
  ]);
  for await (const rows of pages) {
    for (const row of rows) text += writeRow(row);
    yield text;
    text = '';
  }
}

function writeRow(priced: PricedRow): string {
  const { row } = priced;
  const charges = new Map((listCharges(priced) ?? []).map((charge) => [charge.unit, charge]));
  return writeCsvRow([
    row.at.toISOString(),
    row._id,
    row.model,
    String(row.success),
    row.responseCode,
    describeOutcome(row),
    row.promptTokens,
    row.cacheReadTokens,
    row.completionTokens,
    row.reasoningTokens ?? null,
    row.durationMs / 1_000,
    toSeconds(row.firstTokenMs),
    formatRub(row.costNano),
    formatRub(row.shortfallNano),
    String(row.free),
    String(row.counted),
    row.userIp,
    ...chargeUnits.flatMap((unit) => {
      const charge = charges.get(unit);
      return charge === undefined ? [null, null] : [formatRub(charge.rateNano), charge.quantity];
    }),
  ]);
}
