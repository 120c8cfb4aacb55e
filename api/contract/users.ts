import Type, { type Static } from 'typebox';
import { budgetPeriods } from '../../shared/accounts/budget-periods.ts';
import { Nullable, Page, PageOf, PageSize, StringEnum } from '../../shared/contract/fields.ts';
import { defineOperation } from '../../shared/contract/operation.ts';
import {
  newKeyExample,
  profileExample,
  redeemExample,
  refillLogsExample,
  statsExample,
} from './users-examples.ts';

const AccountBudget = (description: string) =>
  Type.Object(
    {
      amount: Type.Number({ description: 'How much the account may spend in each period, in roubles.' }),
      period: StringEnum(budgetPeriods, {
        description: 'Periods begin at 00:00 UTC, weeks on Monday, months on the first.',
      }),
      spent: Type.Number({ description: 'Spent in the current period, in roubles.' }),
      reserved: Type.Number({ description: 'Reserved for requests in progress, in roubles.' }),
      resets_at: Type.String({ format: 'date-time', description: 'When the next period begins.' }),
    },
    { description },
  );

export const UserBalance = Type.Partial(
  Type.Object({
    id: Type.String({
      description: 'The account’s id. Give it to support when you contact them. It does not grant access.',
    }),
    user_type: Type.String({ description: 'The account type, as named by the operator.' }),
    last_used_at: Type.String({
      format: 'date-time',
      description: 'When the account last sent a request to a model, in UTC. Absent if it never did.',
    }),
    balance: Type.Number({
      description: 'The balance in roubles, including amounts reserved for requests in progress.',
    }),
    total_balance_added: Type.Number({ description: 'The sum of all refills, in roubles.' }),
    free_requests: Type.Integer({ description: 'Number of free requests left.' }),
    request_count_last_hour: Type.Number({ description: 'Number of requests in the last hour.' }),
    total_cost_request_last_hour: Type.Number({
      description: 'Cost of the requests in the last hour, in roubles.',
    }),
    average_rpm: Type.Number({ description: 'Requests per minute, averaged over the last hour.' }),
    requests_per_minute: Type.Number({
      description:
        'Maximum number of requests per minute. A request counts as many times as the model’s `rpm_coefficient`.',
    }),
    budget: AccountBudget('The budget that the operator set. Absent without one, like all fields below.'),
    owner_budget: AccountBudget('The budget that the owner set. Both apply.'),
    models: Type.Array(Type.String(), { description: 'The models that the operator allows.' }),
    owner_models: Type.Array(Type.String(), { description: 'The models that the owner allows. Both apply.' }),
    addresses: Type.Array(Type.String(), {
      description: 'The addresses and networks that the key may be used from.',
    }),
    expires_at: Type.String({ format: 'date-time', description: 'When the key stops working.' }),
    tokens_per_minute: Type.Number({
      description:
        'Maximum number of tokens per minute: prompt tokens count when a request is admitted, and completion tokens when ' +
        'it ends. Requests are rejected while the last minute has more.',
    }),
    low_balance: Type.Number({
      description: 'A mail is sent when the balance falls below this amount, in roubles.',
    }),
  }),
  { title: 'UserBalance' },
);
export type UserBalance = Static<typeof UserBalance>;

export const getProfile = defineOperation({
  operationId: 'getProfile',
  tag: 'Users',
  summary: 'Get the balance and limits of the account',
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
    description: 'The refill code. Case and dashes are ignored.',
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
    add_balance: Type.Number({ description: 'The amount added to the balance, in roubles.' }),
    add_free_requests: Type.Integer({ description: 'Number of free requests added.' }),
  },
);
export type RedeemResponse = Static<typeof RedeemResponse>;

export const redeemCode = defineOperation({
  operationId: 'redeemCode',
  tag: 'Users',
  summary: 'Redeem a refill code',
  description:
    'Each code works once. Trying to guess codes bans the account permanently. A code that is already used, expired or ' +
    'revoked does not count as a guess.',
  method: 'post',
  path: '/users/redeem',
  auth: 'key',
  sessionTwin: 'POST /v1/web/api-accounts/{account_id}/redeem',
  body: RedeemRequest,
  response: RedeemResponse,
  errors: ['account_banned', 'invalid_code'],
  example: redeemExample,
});

export const RefillLog = Type.Object(
  {
    created_at: Type.String({ format: 'date-time', description: 'When the balance was refilled, in UTC.' }),
    refill_code_redeemed: Type.String({
      description: 'The code, as issued; empty for a refill without a code.',
    }),
    balance_added: Type.String({
      description:
        'The amount added, in roubles, as a decimal string. A correction that took money has a minus.',
    }),
    free_requests_added: Type.Integer(),
    source: StringEnum(['operator', 'code', 'signup'], {
      description:
        'Where the amount came from: the `operator` of the service, a redeemed `code`, or the sign-up. The balance that an ' +
        'account begins with is one refill.',
    }),
    note: Nullable(Type.String({ description: 'What the operator noted.' })),
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
  summary: 'List the refills of the account',
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
    stat_date: Type.String({ format: 'date', description: 'The day, in UTC.' }),
    request_count: Type.Integer({ description: 'Number of requests that reached a model.' }),
    prompt_tokens: Type.Integer(),
    cache_read_tokens: Type.Integer({ description: 'Prompt tokens read from a cache.' }),
    completion_tokens: Type.Integer(),
    cost_request: Type.Number({ description: 'Cost of the requests on this day, in roubles.' }),
    free_requests: Type.Integer({ description: 'Number of free requests used.' }),
    model_name: Type.Optional(Type.String({ description: 'The id of the model; only with `by=model`.' })),
  },
  { title: 'DailyStat' },
);
export type DailyStat = Static<typeof DailyStat>;

export const Stats = Type.Object({
  period_start_date: Type.String({ format: 'date' }),
  period_end_date: Type.String({ format: 'date', description: 'The last day of the period (inclusive).' }),
  total_requests: Type.Integer(),
  total_prompt_tokens: Type.Integer(),
  total_completion_tokens: Type.Integer(),
  total_cost: Type.Number({ description: 'Total cost, in roubles.' }),
  total_free_requests: Type.Integer(),
  daily_stats: Type.Array(DailyStat, {
    description:
      'Only days with requests, oldest first; with `by=model`, those of a day in the order of the models.',
  }),
});
export type Stats = Static<typeof Stats>;

export const StatsQuery = Type.Object({
  start_date: Type.Optional(
    Type.String({
      format: 'date',
      description: 'The first day, in UTC. Defaults to 30 days ago, which is also the earliest allowed.',
    }),
  ),
  end_date: Type.Optional(
    Type.String({ format: 'date', description: 'The last day, in UTC. Defaults to today.' }),
  ),
  by: Type.Optional(
    StringEnum(['model'], {
      description: '`model`: `daily_stats` has an element for each day and model instead of each day.',
    }),
  ),
});
export type StatsQuery = Static<typeof StatsQuery>;

export const getStats = defineOperation({
  operationId: 'getStats',
  tag: 'Users',
  summary: 'Get daily usage statistics',
  method: 'get',
  path: '/users/stats',
  auth: 'key',
  query: StatsQuery,
  response: Stats,
  errors: ['account_banned'],
  example: statsExample,
});

export const NewApiKey = Type.Object({
  new_api_key: Type.String({
    description: 'The new key. It is shown only once: the service stores a hash of it and an encrypted copy.',
  }),
});
export type NewApiKey = Static<typeof NewApiKey>;

export const regenerateApiKey = defineOperation({
  operationId: 'regenerateApiKey',
  tag: 'Users',
  summary: 'Replace the API key',
  description:
    'The key that you send stops working within a second; requests in progress finish. If you lose the new key, only ' +
    'support can replace it.',
  method: 'put',
  path: '/users/regenerate_api_key',
  auth: 'key',
  sessionTwin: 'PUT /v1/web/api-accounts/{account_id}/regenerate-api-key',
  response: NewApiKey,
  errors: ['account_banned', 'key_generation_failed'],
  example: newKeyExample,
});
