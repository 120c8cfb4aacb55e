import Type, { type Static } from 'typebox';
import { Nullable, StringEnum } from '../../shared/contract/fields.ts';
import { defineOperation } from '../../shared/contract/operation.ts';
import {
  RefillLogPage,
  RefillLogQuery,
  RequestLogPage,
  RequestLogQuery,
  Stats,
  StatsQuery,
} from './users.ts';
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
  Type.String({ pattern: '^-?\\d+(\\.\\d+)?$', description: `${description} Roubles, as a decimal.` });

/** Default name of a user's account. */
export const defaultAccountLabel = 'Основной';

export const ApiAccount = Type.Object(
  {
    id: Type.Integer({ description: 'Names the account in the addresses of the account area.' }),
    user_balance_id: Type.String({ description: 'The account’s own id: the `id` of `/users/profile`.' }),
    label: Type.String({ description: 'What the user calls it.' }),
    is_primary: Type.Boolean({
      description: 'Whether it is the one that was linked first, of those that still are.',
    }),
    balance: rub('The balance, including what is reserved for requests under way.'),
    total_balance_added: rub('The sum of all refills.'),
    free_requests: Type.Integer({ description: 'How many free requests are left.' }),
    user_type: Type.String({ description: 'The kind of account, as the operator names it.' }),
    ban: Type.Boolean({ description: 'Whether it is banned.' }),
    key_id: Type.Optional(
      Nullable(
        Type.Integer({ description: 'Tells this key from those before it: it changes with the key.' }),
      ),
    ),
    key_label: Type.Optional(
      Nullable(Type.String({ description: 'Null: keys have no names of their own.' })),
    ),
    key_masked: Type.Optional(
      Nullable(Type.String({ description: 'Enough of the key to know it by, such as `mg-ab12…wxyz`.' })),
    ),
    key_active: Type.Optional(
      Nullable(Type.Boolean({ description: 'Whether the key opens the account: false while it is banned.' })),
    ),
    average_rpm: Type.Optional(
      Nullable(Type.Number({ description: 'Requests per minute, averaged over the last hour.' })),
    ),
    requests_per_minute: Type.Optional(
      Nullable(Type.Integer({ description: 'The limit of requests per minute.' })),
    ),
    total_cost_request_last_hour: Type.Optional(Nullable(rub('What the requests of the last hour cost.'))),
  },
  { title: 'ApiAccount' },
);
export type ApiAccount = Static<typeof ApiAccount>;

const Label = Type.String({
  minLength: 1,
  maxLength: 80,
  format: 'plain-text',
  description:
    'What the user calls the account: one line with at least one visible character, without control characters.',
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
  response: Type.Array(ApiAccount, { description: 'In the order in which they were linked.' }),
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
    'An account belongs to one user at the most. Wrong keys are counted: after ten within an hour, further keys are ' +
    'refused with 429.',
  method: 'post',
  path: '/web/api-accounts/link',
  auth: 'web',
  body: LinkRequest,
  response: ApiAccount,
  status: 201,
  errors: ['invalid_api_key', 'already_linked'],
  errorTexts: { invalid_api_key: unknownKeyText },
  example: { body: { api_key: keyExample, label: defaultAccountLabel }, response: accountExample },
});

const GrantOfNewUsers = Type.Object(
  {
    balance: rub('What was added to the balance.'),
    free_requests: Type.Integer({ description: 'How many free requests were added.' }),
    reason: Nullable(
      StringEnum(noGrantReasons, {
        description:
          'Null if something was added. `network_limit`: too many new users of this network got the grant within a ' +
          'day. `disposable_email`: the address is of a provider of disposable addresses. `mailbox_granted`: another ' +
          'user whose mail goes to the same mailbox has it. `already_granted`: an earlier account of this user got it. ' +
          '`not_offered`: this service has none.',
      }),
    ),
    message_en: Nullable(
      Type.String({ description: 'The reason in words, and what to do; null without one.' }),
    ),
    message_ru: Nullable(Type.String({ description: 'The same in Russian.' })),
  },
  { title: 'SignupGrant', description: 'What the operator gives new users, and if that is nothing, why.' },
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
    'Adds the operator’s grant for new users, which each user and each mailbox gets once, and only so many users of one ' +
    'network a day; `grant` tells what was added. An account without it works like any other. Returns 409 if the user ' +
    'already has an account.',
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
  summary: 'Show an account of the user',
  method: 'get',
  path: '/web/api-accounts/{account_id}',
  response: ApiAccount,
  errors: ['not_found'],
  example: { path: accountPath, response: accountExample },
});

export const LabelChange = Type.Object({ label: Label });
export type LabelChange = Static<typeof LabelChange>;

export const renameApiAccount = defineOperation({
  ...ofAccount,
  operationId: 'renameApiAccount',
  summary: 'Rename an account',
  method: 'patch',
  path: '/web/api-accounts/{account_id}',
  body: LabelChange,
  response: ApiAccount,
  errors: ['not_found'],
  example: { path: accountPath, body: { label: defaultAccountLabel }, response: accountExample },
});

export const WebRedeemRequest = Type.Object({
  code: Type.String({
    minLength: 1,
    maxLength: 256,
    description: 'A refill code, in any case, with or without its dashes.',
  }),
});
export type WebRedeemRequest = Static<typeof WebRedeemRequest>;

export const RedeemedRefillCode = Type.Object(
  {
    balance_added: rub('What the code added to the balance.'),
    free_requests_added: Type.Integer({ description: 'What the code added to the free requests.' }),
    balance: rub('With what was added.'),
    total_balance_added: rub('The sum of all refills.'),
    free_requests: Type.Integer({ description: 'How many free requests are left.' }),
  },
  { title: 'RedeemedRefillCode' },
);
export type RedeemedRefillCode = Static<typeof RedeemedRefillCode>;

export const redeemForApiAccount = defineOperation({
  ...ofAccount,
  operationId: 'redeemForApiAccount',
  summary: 'Redeem a refill code for an account',
  description: 'As `/users/redeem`: guessing codes bans the account for good.',
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
  description: 'As `/users/request_logs`.',
  method: 'get',
  path: '/web/api-accounts/{account_id}/request-logs',
  query: RequestLogQuery,
  response: RequestLogPage,
  errors: ['not_found', 'account_banned'],
  example: { ...requestLogsExample, path: accountPath },
});

export const listRefillLogsOfApiAccount = defineOperation({
  ...ofAccount,
  operationId: 'listRefillLogsOfApiAccount',
  summary: 'List the codes that were redeemed for an account',
  description: 'As `/users/refill_logs`.',
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
  summary: 'Sum up the requests of an account by day',
  description: 'As `/users/stats`.',
  method: 'get',
  path: '/web/api-accounts/{account_id}/stats',
  query: StatsQuery,
  response: Stats,
  errors: ['not_found', 'account_banned'],
  example: { ...statsExample, path: accountPath },
});
