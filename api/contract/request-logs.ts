import Type, { type Static } from 'typebox';
import { requestOutcomes } from '../../shared/contract/request-terms.ts';
import { maxCsvRows, Nullable, Page, PageOf, StringEnum, TimeBound } from '../../shared/contract/fields.ts';
import { defineOperation } from '../../shared/contract/operation.ts';
import { RequestQuantities, RequestRates } from '../../shared/contract/request-rates.ts';
import { requestLogsCsvExample, requestLogsExample } from './users-examples.ts';

export const RequestLog = Type.Object(
  {
    created_at: Type.String({ format: 'date-time', description: 'When the request was received, in UTC.' }),
    success: Type.Boolean(),
    response_code: Type.Integer({ description: 'HTTP status of the response; 200 on success.' }),
    request_id: Type.String({ description: 'The `x-request-id` of the response.' }),
    details: Nullable(
      Type.String({
        description:
          'What went wrong, as `code: message`. On success, null or what is missing from the response.',
      }),
    ),
    user_ip: Type.String({ description: 'The IP address that sent the request.' }),
    model_name: Type.String({
      description: 'The id of the model; empty for a rejected request that names none.',
    }),
    prompt_tokens: Type.Integer(),
    cache_read_tokens: Nullable(
      Type.Integer({
        description: 'Prompt tokens read from a cache; null if the vendor does not report them.',
      }),
    ),
    completion_tokens: Type.Integer(),
    reasoning_tokens: Nullable(
      Type.Integer({
        description:
          'The part of the completion tokens that was reasoning; null if the vendor does not report it, and for batches.',
      }),
    ),
    total_time: Type.Number({ description: 'Duration of the request, in seconds.' }),
    first_token_seconds: Nullable(
      Type.Number({
        description: 'Seconds until the first output of a chat that was streamed; null for everything else.',
      }),
    ),
    idempotency_key: Nullable(
      Type.Boolean({
        description:
          'Whether it was sent with an `Idempotency-Key`; null for batches and requests of earlier releases. A repetition that ' +
          'got its response costs nothing, and is not listed.',
      }),
    ),
    cost_request: Type.Number({ description: 'Cost of the request, in roubles.' }),
    rates: Nullable(RequestRates),
    quantities: Nullable(RequestQuantities),
    shortfall: Type.Number({
      description:
        'What the request would have cost beyond the balance and what was reserved for it, in roubles. Never charged.',
    }),
    free_requests: Type.Boolean({ description: 'Whether the request was paid for with a free request.' }),
    is_free_request: Type.Boolean({ description: 'The same as `free_requests`.' }),
    estimated: Type.Boolean({
      description: 'Whether the gateway counted the tokens because the vendor did not report them.',
    }),
  },
  { title: 'RequestLog' },
);
export type RequestLog = Static<typeof RequestLog>;

export const RequestTotals = Type.Object(
  {
    requests: Type.Integer({ description: 'Lines of batches count one by one.' }),
    prompt_tokens: Type.Integer(),
    completion_tokens: Type.Integer(),
    cost: Type.Number({ description: 'In roubles.' }),
  },
  { title: 'RequestTotals', description: 'Sums over all requests that the filters select, on all pages.' },
);
export type RequestTotals = Static<typeof RequestTotals>;

export const RequestLogPage = Type.Interface([PageOf(RequestLog)], {
  totals: RequestTotals,
  has_exact_total: Type.Boolean({
    description:
      'False if more than 10 000 requests match and no daily sums answer. `totals` are then those of the newest 10 000, and ' +
      'with filters, the pages end there: send an earlier `until`.',
  }),
});
export type RequestLogPage = Static<typeof RequestLogPage>;

export const RequestLogQuery = Type.Object({
  page: Page,
  model: Type.Optional(
    Type.String({ minLength: 1, maxLength: 128, description: 'Only of the model with this id.' }),
  ),
  outcome: Type.Optional(
    StringEnum(requestOutcomes, {
      description:
        'Only requests that succeeded, or that failed at a model; or those that were `rejected` before one was called, which are ' +
        'in no other list and in no sums: of those with the same code, 20 at once and then one in ten seconds.',
    }),
  ),
  since: TimeBound(
    'Only requests received at this time or later: a time in RFC 3339 format, or a day (YYYY-MM-DD) in UTC. What is longer ' +
      'than 72 hours ago is not shown.',
  ),
  until: TimeBound('Only requests received before this time, or until the end of this day.'),
  request_id: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 200,
      description: 'Only the request with this id, also if it was rejected.',
    }),
  ),
});
export type RequestLogQuery = Static<typeof RequestLogQuery>;

/** The same requests as a file. */
export const requestLogCsv = [
  {
    status: 200,
    responseType: 'text/csv',
    response: Type.String(),
    description:
      'With `Accept: text/csv`: all requests that the filters select, newest first, one line each after one with the names; ' +
      '`page` is ignored. Amounts are exact, and each rate and quantity has a column. If more than ' +
      `${maxCsvRows.toLocaleString('en').replaceAll(',', ' ')} requests match, the call is refused: name a shorter time.`,
    example: requestLogsCsvExample,
  },
] as const;

export const listRequestLogs = defineOperation({
  operationId: 'listRequestLogs',
  tag: 'Users',
  summary: 'List the requests of the last 72 hours',
  description:
    'Lists requests that reached a model, successful or not. Requests that were rejected earlier are listed only with ' +
    '`outcome=rejected`, or by their id. A page ' +
    'contains up to 300 requests. Only requests that match all filters are listed.',
  method: 'get',
  path: '/users/request_logs',
  auth: 'key',
  query: RequestLogQuery,
  response: RequestLogPage,
  additionalResponses: requestLogCsv,
  errors: ['account_banned'],
  example: requestLogsExample,
});
