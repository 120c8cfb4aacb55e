import Type, { type Static } from 'typebox';
import { budgetPeriods } from '../../shared/accounts/budget-periods.ts';
import { maxModels } from '../../shared/accounts/read-account-settings.ts';
import { Nullable, StringEnum } from '../../shared/contract/fields.ts';
import { defineOperation } from '../../shared/contract/operation.ts';
import { requestLogCsv, RequestLogPage, RequestLogQuery } from './request-logs.ts';
import { RefillLogPage, RefillLogQuery, Stats, StatsQuery } from './users.ts';
import { refillLogsExample, requestLogsExample, statsExample } from './users-examples.ts';
import {
  accountExample,
  accountPath,
  firstAccountExample,
  grantExample,
  keyExample,
} from './web-accounts-examples.ts';
import { noSuchLinkText, unknownKeyText } from '../../shared/contract/web-errors.ts';
import { noGrantReasons } from '../../shared/accounts/no-grant-reasons.ts';

const rub = (description: string) =>
  Type.String({
    pattern: '^-?\\d+(\\.\\d+)?$',
    description: `${description} In roubles, as a decimal string.`,
  });

const periodDescription = 'Periods begin at 00:00 UTC, weeks on Monday, months on the first.';

const BudgetOfAccount = (description: string) =>
  Nullable(
    Type.Object(
      {
        amount: rub('How much the account may spend in each period.'),
        period: StringEnum(budgetPeriods, { description: periodDescription }),
        spent: rub('Spent in the current period.'),
        reserved: rub('Reserved for requests in progress.'),
        resets_at: Type.String({ format: 'date-time', description: 'When the next period begins.' }),
      },
      { description },
    ),
  );

const Names = (description: string) => Nullable(Type.Array(Type.String(), { description }));

/** Default name of a user's account. */
export const defaultAccountLabel = 'Основной';

export const ApiAccount = Type.Object(
  {
    id: Type.Integer({ description: 'The id of the account in account area URLs.' }),
    user_balance_id: Type.String({ description: 'The account’s own id, the `id` in `/users/profile`.' }),
    label: Type.String({ description: 'The user’s name for the account.' }),
    is_primary: Type.Boolean({
      description: 'Whether this is the earliest linked of the user’s current accounts.',
    }),
    balance: rub('The balance, including amounts reserved for requests in progress.'),
    total_balance_added: rub('The sum of all refills.'),
    free_requests: Type.Integer({ description: 'Number of free requests left.' }),
    user_type: Type.String({ description: 'The account type, as named by the operator.' }),
    ban: Type.Boolean({ description: 'Whether the account is banned.' }),
    key_id: Type.Optional(
      Nullable(Type.Integer({ description: 'Identifies the key. It changes when the key is replaced.' })),
    ),
    key_label: Type.Optional(Nullable(Type.String({ description: 'Always null: keys have no names.' }))),
    key_masked: Type.Optional(
      Nullable(
        Type.String({ description: 'A masked form of the key to recognize it by, such as `mg-ab12…wxyz`.' }),
      ),
    ),
    key_active: Type.Optional(
      Nullable(Type.Boolean({ description: 'Whether the key works. False while the account is banned.' })),
    ),
    average_rpm: Type.Optional(
      Nullable(Type.Number({ description: 'Requests per minute, averaged over the last hour.' })),
    ),
    requests_per_minute: Type.Optional(
      Nullable(Type.Integer({ description: 'Maximum number of requests per minute.' })),
    ),
    total_cost_request_last_hour: Type.Optional(Nullable(rub('Cost of the requests in the last hour.'))),
    budget: Type.Optional(BudgetOfAccount('The budget that the user set; null without one.')),
    models: Type.Optional(Names('The models that the user allows; null for all.')),
    low_balance: Type.Optional(
      Nullable(rub('A mail is sent when the balance falls below this amount; null for never.')),
    ),
    limits: Type.Optional(
      Nullable(
        Type.Object(
          {
            budget: BudgetOfAccount('The budget that the operator set.'),
            models: Names('The models that the operator allows.'),
            addresses: Names('The addresses and networks that the key may be used from.'),
            expires_at: Nullable(
              Type.String({ format: 'date-time', description: 'When the key stops working.' }),
            ),
            tokens_per_minute: Nullable(
              Type.Integer({ description: 'Maximum number of tokens per minute.' }),
            ),
          },
          {
            description:
              'What the operator set. It applies beside what the user sets, and the user cannot change it. Null for what is ' +
              'not limited.',
          },
        ),
      ),
    ),
  },
  { title: 'ApiAccount' },
);
export type ApiAccount = Static<typeof ApiAccount>;

const Label = Type.String({
  minLength: 1,
  maxLength: 80,
  format: 'plain-text',
  description:
    'The user’s name for the account: one line with at least one visible character, without control characters.',
});
const LabelWithDefault = Type.Unsafe<string>({ ...Label, default: defaultAccountLabel });

export const AccountPath = Type.Object({
  account_id: Type.Integer({
    description: 'The `id` of the account. Returns 404 for another user’s account.',
  }),
});
export type AccountPath = Static<typeof AccountPath>;

/** Shared fields of the operations on one account of the user. */
export const ofAccount = {
  tag: 'Web API Accounts',
  auth: 'web',
  pathParameters: AccountPath,
  errorTexts: { not_found: noSuchLinkText(accountPath.account_id) },
} as const;

export const listApiAccounts = defineOperation({
  operationId: 'listApiAccounts',
  tag: 'Web API Accounts',
  summary: 'List the accounts of the user',
  method: 'get',
  path: '/web/api-accounts',
  auth: 'web',
  response: Type.Array(ApiAccount, { description: 'The accounts, in the order in which they were linked.' }),
  errors: [],
  example: { response: [accountExample] },
});

export const LinkRequest = Type.Object({
  api_key: Type.String({ minLength: 10, maxLength: 512, description: 'The key of the account.' }),
  label: LabelWithDefault,
});
export type LinkRequest = Static<typeof LinkRequest>;

export const linkApiAccount = defineOperation({
  operationId: 'linkApiAccount',
  tag: 'Web API Accounts',
  summary: 'Link an account by its key',
  description:
    'An account can be linked to only one user. The key must be usable: not expired, and from an address that may use it. ' +
    'After ten incorrect keys within an hour, further attempts return 429.',
  method: 'post',
  path: '/web/api-accounts/link',
  auth: 'web',
  body: LinkRequest,
  response: ApiAccount,
  status: 201,
  errors: ['invalid_api_key', 'already_linked', 'address_not_allowed', 'key_expired'],
  errorTexts: { invalid_api_key: unknownKeyText },
  example: { body: { api_key: keyExample, label: defaultAccountLabel }, response: accountExample },
});

const GrantOfNewUsers = Type.Object(
  {
    balance: rub('The amount added to the balance.'),
    free_requests: Type.Integer({ description: 'Number of free requests added.' }),
    reason: Nullable(
      StringEnum(noGrantReasons, {
        description:
          'Why nothing was added; null if something was. `network_limit`: too many new users on this network received ' +
          'the grant within a day. `disposable_email`: the address belongs to a provider of disposable addresses. ' +
          '`mailbox_granted`: another user with the same mailbox received it. `already_granted`: an earlier account of ' +
          'this user received it. `not_offered`: this service has no grant.',
      }),
    ),
    message_en: Nullable(
      Type.String({ description: 'The reason, and what to do; null if `reason` is null.' }),
    ),
    message_ru: Nullable(Type.String({ description: 'The same as `message_en`, in Russian.' })),
  },
  { title: 'SignupGrant', description: 'The operator’s grant for new users, or why none was added.' },
);
export type GrantOfNewUsers = Static<typeof GrantOfNewUsers>;

export const CreatedApiAccount = Type.Object(
  {
    account: ApiAccount,
    api_key: Type.String({ description: 'The key of the account.' }),
    grant: GrantOfNewUsers,
  },
  { title: 'CreatedApiAccount' },
);
export type CreatedApiAccount = Static<typeof CreatedApiAccount>;

export const FirstAccountRequest = Type.Object({ label: LabelWithDefault });
export type FirstAccountRequest = Static<typeof FirstAccountRequest>;

export const createFirstApiAccount = defineOperation({
  operationId: 'createFirstApiAccount',
  tag: 'Web API Accounts',
  summary: 'Create the first account of the user',
  description:
    'Adds the operator’s grant for new users. Each user and each mailbox can receive it once, and the number of grants ' +
    'per network and day is limited; `grant` contains what was added. An account without the grant works like any ' +
    'other. Returns 409 if the user already has an account.',
  method: 'post',
  path: '/web/api-accounts/first',
  auth: 'web',
  body: FirstAccountRequest,
  response: CreatedApiAccount,
  status: 201,
  errors: ['account_exists'],
  example: {
    body: { label: defaultAccountLabel },
    response: { account: firstAccountExample, api_key: keyExample, grant: grantExample },
  },
});

export const getApiAccount = defineOperation({
  ...ofAccount,
  operationId: 'getApiAccount',
  summary: 'Get an account of the user',
  method: 'get',
  path: '/web/api-accounts/{account_id}',
  response: ApiAccount,
  errors: ['not_found'],
  example: { path: accountPath, response: accountExample },
});

const Amount = (description: string) =>
  Type.Union([Type.Number({ minimum: 0 }), Type.String({ maxLength: 30 })], {
    description: `${description} In roubles, as a number or a decimal string.`,
  });

export const AccountChange = Type.Object(
  {
    label: Type.Optional(Label),
    budget: Type.Optional(
      Nullable(
        Type.Object({
          amount: Amount('How much the account may spend in each period.'),
          period: StringEnum(budgetPeriods, { description: periodDescription }),
        }),
      ),
    ),
    models: Type.Optional(
      Nullable(
        Type.Array(Type.String({ maxLength: 200 }), {
          minItems: 1,
          maxItems: maxModels,
          description: 'Ids of the models that the account may use.',
        }),
      ),
    ),
    low_balance: Type.Optional(Nullable(Amount('A mail is sent when the balance falls below this amount.'))),
  },
  { minProperties: 1 },
);
export type AccountChange = Static<typeof AccountChange>;

export const renameApiAccount = defineOperation({
  ...ofAccount,
  operationId: 'renameApiAccount',
  summary: 'Change the name, budget, models or threshold of an account',
  description:
    'Fields that are not sent stay; null clears one. The budget and the models apply beside those that the operator set, so ' +
    'they never allow more. What was spent in the current period counts towards a new budget.',
  method: 'patch',
  path: '/web/api-accounts/{account_id}',
  body: AccountChange,
  response: ApiAccount,
  errors: ['not_found'],
  example: { path: accountPath, body: { label: defaultAccountLabel }, response: accountExample },
});

export const WebRedeemRequest = Type.Object({
  code: Type.String({
    minLength: 1,
    maxLength: 256,
    description: 'The refill code. Case and dashes are ignored.',
  }),
});
export type WebRedeemRequest = Static<typeof WebRedeemRequest>;

export const RedeemedRefillCode = Type.Object(
  {
    balance_added: rub('The amount added to the balance.'),
    free_requests_added: Type.Integer({ description: 'Number of free requests added by the code.' }),
    balance: rub('The new balance.'),
    total_balance_added: rub('The sum of all refills.'),
    free_requests: Type.Integer({ description: 'Number of free requests left.' }),
  },
  { title: 'RedeemedRefillCode' },
);
export type RedeemedRefillCode = Static<typeof RedeemedRefillCode>;

export const redeemForApiAccount = defineOperation({
  ...ofAccount,
  operationId: 'redeemForApiAccount',
  summary: 'Redeem a refill code for an account',
  description: 'Works like `/users/redeem`: trying to guess codes bans the account permanently.',
  method: 'post',
  path: '/web/api-accounts/{account_id}/redeem',
  body: WebRedeemRequest,
  response: RedeemedRefillCode,
  errors: ['not_found', 'account_banned', 'invalid_code'],
  example: {
    path: accountPath,
    body: { code: '7KQM-9XFD-3TRW-M8PA-2VBH' },
    response: {
      balance_added: '50',
      free_requests_added: 0,
      balance: '150',
      total_balance_added: '150',
      free_requests: 10,
    },
  },
});

export const listRequestLogsOfApiAccount = defineOperation({
  ...ofAccount,
  operationId: 'listRequestLogsOfApiAccount',
  summary: 'List the requests of an account in the last 72 hours',
  description: 'Works like `/users/request_logs`.',
  method: 'get',
  path: '/web/api-accounts/{account_id}/request-logs',
  query: RequestLogQuery,
  response: RequestLogPage,
  additionalResponses: requestLogCsv,
  errors: ['not_found', 'account_banned'],
  example: { ...requestLogsExample, path: accountPath },
});

export const listRefillLogsOfApiAccount = defineOperation({
  ...ofAccount,
  operationId: 'listRefillLogsOfApiAccount',
  summary: 'List the refill codes redeemed for an account',
  description: 'Works like `/users/refill_logs`.',
  method: 'get',
  path: '/web/api-accounts/{account_id}/refill-logs',
  query: RefillLogQuery,
  response: RefillLogPage,
  errors: ['not_found', 'account_banned'],
  example: { ...refillLogsExample, path: accountPath },
});

export const getStatsOfApiAccount = defineOperation({
  ...ofAccount,
  operationId: 'getStatsOfApiAccount',
  summary: 'Get daily usage statistics of an account',
  description: 'Works like `/users/stats`.',
  method: 'get',
  path: '/web/api-accounts/{account_id}/stats',
  query: StatsQuery,
  response: Stats,
  errors: ['not_found', 'account_banned'],
  example: { ...statsExample, path: accountPath },
});
