import Type from 'typebox';
import {
  AdminRequest,
  AdminSpend,
  AdminSpendTotal,
  spendOrders,
} from '../../../shared/contract/admin-requests.ts';
import { maxCsvRows, Nullable, StringEnum, TimeBound } from '../../../shared/contract/fields.ts';
import { requestOutcomes } from '../../../shared/contract/request-terms.ts';
import { defineOperation } from '../../../shared/contract/operation.ts';
import { IdInQuery, pageQuery } from './fields.ts';

const accountId = '0f7c2a1e-93f4-4c8b-a1d5-6f1f6c1d2e3a';
const requestId = '019aa6b5-2f4e-7c1d-8a3b-5d6e7f8091a2';

const request: AdminRequest = {
  id: requestId,
  account: accountId,
  account_name: 'Example Ltd',
  created_at: '2026-11-21T09:15:04.000Z',
  is_expired: false,
  model: 'gpt-4o-mini',
  outcome: 'success',
  status: 200,
  code: null,
  details: null,
  upstream: 'openai',
  attempts: [
    {
      upstream: 'azure',
      status: 503,
      reason: 'the upstream responded with 503: The server is overloaded.',
      started_ms: 21,
      duration_ms: 212,
    },
    { upstream: 'openai', status: 200, reason: null, started_ms: 240, duration_ms: 1_790 },
  ],
  prompt_tokens: 812,
  cache_read_tokens: 512,
  completion_tokens: 251,
  reasoning_tokens: 0,
  images: 0,
  lines: null,
  estimated: false,
  total_time: 2.034,
  queued_ms: 21,
  first_token_seconds: null,
  cost: 0.04114748,
  shortfall: 0,
  vendor_cost: 0.0214,
  margin: 0.01974748,
  rates: { prompt: 30, cached_prompt: 15, cache_write: 30, completion: 97.48 },
  quantities: { prompt: 300, cached_prompt: 512, cache_write: 0, completion: 251 },
  vendor_rates: null,
  vendor_quantities: null,
  free: false,
  user: null,
  user_ip: '203.0.113.17',
  idempotency_key: true,
  replays: null,
  price_version: '0123456789ab',
};

const filter = {
  account: Type.Optional(IdInQuery('Only of the account with this id.')),
  model: Type.Optional(Type.String({ minLength: 1, maxLength: 128, description: 'Only of this model.' })),
};

export const listAdminRequests = defineOperation({
  operationId: 'listAdminRequests',
  tag: 'Admin',
  summary: 'List requests',
  description:
    'The request log of all accounts, newest first, for `LOG_RETENTION_DAYS`. Requests that were rejected before a model was ' +
    'called, such as for want of money, are listed with `outcome=rejected` alone, for 72 hours: of those of an account with the ' +
    'same code, 20 at once and then one in ten seconds for each api process. Name an account, a model or a time where you can: a filter that matches ' +
    'few of very many rows may take too long.',
  method: 'get',
  path: '/admin/requests',
  auth: 'admin',
  adminScope: 'read',
  query: Type.Object({
    ...filter,
    upstream: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 200,
        description:
          'Only those whose last call was to this upstream. Requests that were logged before the update that brought this ' +
          'filter are not found by it.',
      }),
    ),
    outcome: Type.Optional(StringEnum(requestOutcomes)),
    since: TimeBound('A time in RFC 3339 format, or a day (YYYY-MM-DD) in UTC; included. Of the admission.'),
    until: TimeBound('A time, which is not included, or a day, which is.'),
    ...pageQuery,
  }),
  response: Type.Object({
    data: Type.Array(AdminRequest, { description: 'Newest first.' }),
    has_more: Type.Boolean({ description: 'Whether there is another page.' }),
    last_id: Nullable(Type.String({ description: 'Where the next page begins: send it as `after`.' })),
    total: Nullable(
      Type.Integer({
        description: 'How many requests match; null on later pages, which do not count again.',
      }),
    ),
    has_exact_total: Type.Boolean({
      description:
        'False if there are more than `total`: filters other than account, model and days count up to 10 000.',
    }),
  }),
  additionalResponses: [
    {
      status: 200,
      responseType: 'text/csv',
      response: Type.String(),
      description:
        'With `Accept: text/csv`: all requests that the filters select, newest first, one line for each after one with the ' +
        'names. `limit` and `after` are ignored. If more than ' +
        `${maxCsvRows.toLocaleString('en').replaceAll(',', ' ')} requests match, the call is refused: name a shorter time.`,
      example: {
        response: 'id,created_at,account,model\r\n',
      },
    },
  ],
  errors: [],
  example: {
    query: { account: accountId, outcome: 'success', since: '2026-11-01', limit: 20 },
    response: { data: [request], has_more: false, last_id: requestId, total: 1, has_exact_total: true },
  },
});

export const getAdminRequest = defineOperation({
  operationId: 'getAdminRequest',
  tag: 'Admin',
  summary: 'Get a request',
  description:
    'By its `x-request-id`, also if it was rejected. After `LOG_RETENTION_DAYS`, only what it cost is known (`is_expired`).',
  method: 'get',
  path: '/admin/requests/{request_id}',
  auth: 'admin',
  adminScope: 'read',
  pathParameters: Type.Object({
    request_id: Type.String({ minLength: 1, maxLength: 200, description: 'The id of the request.' }),
  }),
  response: AdminRequest,
  errors: ['not_found'],
  example: { path: { request_id: requestId }, response: { ...request, replays: 1 } },
});

const spend: AdminSpend = {
  model: 'gpt-4o-mini',
  day: '2026-11-21',
  requests: 1_204,
  failures: 3,
  free_requests: 0,
  prompt_tokens: 977_648,
  cached_tokens: 616_448,
  completion_tokens: 302_204,
  cost: 49.36,
  vendor_cost: 25.77,
  margin: 23.59,
  costed_requests: 1_204,
};

export const getSpend = defineOperation({
  operationId: 'getSpend',
  tag: 'Admin',
  summary: 'Sum what requests cost',
  description:
    'What customers paid, what vendors charge and the margin, by any of account, model and day. Sums are kept for ever. With ' +
    '`Accept: text/csv`, the same as a file, with exact amounts. Sums by upstream are over all accounts, without lines of ' +
    'batches, and only of requests since the update that brought them; a request counts to the upstream that was called last.',
  method: 'get',
  path: '/admin/spend',
  auth: 'admin',
  adminScope: 'read',
  query: Type.Object({
    ...filter,
    upstream: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 200,
        description: 'Only of this upstream. Not with `account`.',
      }),
    ),
    since: Type.Optional(
      Type.String({
        format: 'date',
        description: 'First day, in UTC. By default 30 days are summed, at most 366.',
      }),
    ),
    until: Type.Optional(Type.String({ format: 'date', description: 'Last day, in UTC; by default today.' })),
    by: Type.String({
      default: 'account,model,day',
      pattern: '^(account|upstream|model|day)(,(account|upstream|model|day)){0,2}$',
      description:
        'Any of `account`, `model` and `day`, separated by commas; or of `upstream`, `model` and `day`.',
    }),
    limit: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 1_000,
        description:
          'Only so many rows, the first ones of `sort`, with the total of all rows. Not of a file.',
      }),
    ),
    sort: StringEnum(spendOrders, {
      default: 'cost',
      description:
        'What rows are ordered by if there is a `limit`. `tokens` are those of prompts and completions.',
    }),
    order: StringEnum(['desc', 'asc'], {
      default: 'desc',
      description: 'Rows without a value, such as a margin, come last in both directions.',
    }),
  }),
  response: Type.Object({
    data: Type.Array(AdminSpend, {
      description: 'In the order of account, day, upstream and model; with `limit`, in that of `sort`.',
    }),
    total: Type.Optional(AdminSpendTotal),
  }),
  additionalResponses: [
    {
      status: 200,
      responseType: 'text/csv',
      response: Type.String(),
      description: 'With `Accept: text/csv`: one line for each row, after one with the names.',
      example: { response: 'model,requests,failures\r\ngpt-4o-mini,1204,3\r\n' },
    },
  ],
  errors: [],
  example: {
    query: { by: 'model,day', since: '2026-11-21', until: '2026-11-21' },
    response: { data: [spend] },
  },
});
