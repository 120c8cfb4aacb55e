import Type, { type Static } from 'typebox';
import { Nullable, Page, PageOf, PageSize } from '../../shared/contract/fields.ts';
import { defineOperation } from '../../shared/contract/operation.ts';
import {
  newKeyExample,
  profileExample,
  redeemExample,
  refillLogsExample,
  requestLogsExample,
  statsExample,
} from './users-examples.ts';

export const UserBalance = Type.Partial(
  Type.Object({
    id: Type.String({ description: 'The account’s id: what support asks for. It opens nothing.' }),
    user_type: Type.String({ description: 'The kind of account, as the operator names it.' }),
    last_used_at: Type.String({
      format: 'date-time',
      description: 'When the account last asked a model for something, in UTC; left out where it never did.',
    }),
    balance: Type.Number({ description: 'Roubles, with what is reserved for requests under way.' }),
    total_balance_added: Type.Number({ description: 'The sum of all refills, in roubles.' }),
    free_requests: Type.Integer({ description: 'How many free requests are left.' }),
    request_count_last_hour: Type.Number({ description: 'Requests of the last hour.' }),
    total_cost_request_last_hour: Type.Number({ description: 'What they cost, in roubles.' }),
    average_rpm: Type.Number({ description: 'Requests per minute, averaged over the last hour.' }),
    requests_per_minute: Type.Number({
      description:
        'The limit of requests per minute; a model’s `rpm_coefficient` says how many one counts for.',
    }),
  }),
  { title: 'UserBalance' },
);
export type UserBalance = Static<typeof UserBalance>;

export const getProfile = defineOperation({
  operationId: 'getProfile',
  tag: 'Users',
  summary: 'Show the balance and limits of the key',
  method: 'get',
  path: '/users/profile',
  auth: 'key',
  response: UserBalance,
  errors: [],
  example: profileExample,
});

export const RedeemRequest = Type.Object({
  code: Type.String({
    minLength: 1,
    maxLength: 256,
    description: 'A refill code, in any case, with or without its dashes.',
  }),
});
export type RedeemRequest = Static<typeof RedeemRequest>;

export const RedeemResponse = Type.Interface(
  [
    Type.Pick(UserBalance, [
      'id',
      'user_type',
      'last_used_at',
      'balance',
      'total_balance_added',
      'free_requests',
    ]),
  ],
  {
    add_balance: Type.Number({ description: 'What the code added to the balance; roubles.' }),
    add_free_requests: Type.Integer({ description: 'What the code added to the free requests.' }),
  },
);
export type RedeemResponse = Static<typeof RedeemResponse>;

export const redeemCode = defineOperation({
  operationId: 'redeemCode',
  tag: 'Users',
  summary: 'Redeem a refill code',
  description:
    'Each code works once. Guessing codes bans the account for good; a code that is used, expired or revoked does not count as a guess.',
  method: 'post',
  path: '/users/redeem',
  auth: 'key',
  body: RedeemRequest,
  response: RedeemResponse,
  errors: ['account_banned', 'invalid_code'],
  example: redeemExample,
});

export const RefillLog = Type.Object(
  {
    created_at: Type.String({ format: 'date-time', description: 'When the code was redeemed, in UTC.' }),
    refill_code_redeemed: Type.String({ description: 'The code as it was issued.' }),
    balance_added: Type.String({ description: 'Roubles, as a decimal.' }),
    free_requests_added: Type.Integer(),
  },
  { title: 'RefillLog' },
);
export type RefillLog = Static<typeof RefillLog>;

export const RefillLogPage = PageOf(RefillLog);
export type RefillLogPage = Static<typeof RefillLogPage>;

export const RefillLogQuery = Type.Object({ page: Page, page_size: PageSize });
export type RefillLogQuery = Static<typeof RefillLogQuery>;

export const listRefillLogs = defineOperation({
  operationId: 'listRefillLogs',
  tag: 'Users',
  summary: 'List the codes that the account has redeemed',
  method: 'get',
  path: '/users/refill_logs',
  auth: 'key',
  query: RefillLogQuery,
  response: RefillLogPage,
  errors: ['account_banned'],
  example: refillLogsExample,
});

export const DailyStat = Type.Object(
  {
    stat_date: Type.String({ format: 'date', description: 'A day in UTC.' }),
    request_count: Type.Integer({ description: 'Requests that reached a model.' }),
    prompt_tokens: Type.Integer(),
    cache_read_tokens: Type.Integer({ description: 'Of the prompt tokens, those read from a cache.' }),
    completion_tokens: Type.Integer(),
    cost_request: Type.Number({ description: 'What the day cost; roubles.' }),
    free_requests: Type.Integer({ description: 'Requests paid with a free request.' }),
  },
  { title: 'DailyStat' },
);
export type DailyStat = Static<typeof DailyStat>;

export const Stats = Type.Object({
  period_start_date: Type.String({ format: 'date' }),
  period_end_date: Type.String({ format: 'date', description: 'The last day of the period, included.' }),
  total_requests: Type.Integer(),
  total_prompt_tokens: Type.Integer(),
  total_completion_tokens: Type.Integer(),
  total_cost: Type.Number({ description: 'Roubles.' }),
  total_free_requests: Type.Integer(),
  daily_stats: Type.Array(DailyStat, { description: 'Days with requests alone, oldest first.' }),
});
export type Stats = Static<typeof Stats>;

export const StatsQuery = Type.Object({
  start_date: Type.Optional(
    Type.String({ format: 'date', description: 'At the earliest, and unless given, 30 days back (UTC).' }),
  ),
  end_date: Type.Optional(Type.String({ format: 'date', description: 'Today (UTC) unless given.' })),
});
export type StatsQuery = Static<typeof StatsQuery>;

export const getStats = defineOperation({
  operationId: 'getStats',
  tag: 'Users',
  summary: 'Sum up the requests of each day',
  method: 'get',
  path: '/users/stats',
  auth: 'key',
  query: StatsQuery,
  response: Stats,
  errors: ['account_banned'],
  example: statsExample,
});

export const RequestLog = Type.Object(
  {
    created_at: Type.String({ format: 'date-time', description: 'When the request came, in UTC.' }),
    success: Type.Boolean(),
    response_code: Type.Integer({ description: 'HTTP status of the answer; 200 on success.' }),
    request_id: Type.String({ description: 'The x-request-id of the answer.' }),
    details: Nullable(
      Type.String({
        description: 'What went wrong, as `code: message`. On success null, or what the answer lacks.',
      }),
    ),
    user_ip: Type.String({ description: 'Address that the request came from.' }),
    model_name: Type.String({ description: 'Id of the model.' }),
    prompt_tokens: Type.Integer(),
    cache_read_tokens: Nullable(
      Type.Integer({
        description: 'Of the prompt tokens, those read from a cache; null where the vendor does not tell.',
      }),
    ),
    completion_tokens: Type.Integer(),
    total_time: Type.Number({ description: 'Seconds.' }),
    cost_request: Type.Number({ description: 'Roubles.' }),
    free_requests: Type.Boolean({ description: 'Whether it was paid with a free request.' }),
    is_free_request: Type.Boolean({ description: 'The same as `free_requests`.' }),
    estimated: Type.Boolean({ description: 'The tokens are our own count: the vendor reported none.' }),
  },
  { title: 'RequestLog' },
);
export type RequestLog = Static<typeof RequestLog>;

export const RequestLogPage = PageOf(RequestLog);
export type RequestLogPage = Static<typeof RequestLogPage>;

export const RequestLogQuery = Type.Object({ page: Page });
export type RequestLogQuery = Static<typeof RequestLogQuery>;

export const listRequestLogs = defineOperation({
  operationId: 'listRequestLogs',
  tag: 'Users',
  summary: 'List the requests of the last 72 hours',
  description:
    'Requests that reached a model, successful or not; what was refused before is not listed. A page holds 300.',
  method: 'get',
  path: '/users/request_logs',
  auth: 'key',
  query: RequestLogQuery,
  response: RequestLogPage,
  errors: ['account_banned'],
  example: requestLogsExample,
});

export const NewApiKey = Type.Object({
  new_api_key: Type.String({ description: 'Shown this once: it is kept as a hash and encrypted.' }),
});
export type NewApiKey = Static<typeof NewApiKey>;

export const regenerateApiKey = defineOperation({
  operationId: 'regenerateApiKey',
  tag: 'Users',
  summary: 'Replace the key',
  description:
    'The key that was sent stops working within a second; requests under way finish. A new key that was lost can be replaced only by support.',
  method: 'put',
  path: '/users/regenerate_api_key',
  auth: 'key',
  response: NewApiKey,
  errors: ['account_banned', 'key_generation_failed'],
  example: newKeyExample,
});
