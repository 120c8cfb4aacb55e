import Type, { type Static } from 'typebox';
import { maxQueuedJobsBound, maxWeight } from '../../../shared/accounts/job-settings.ts';
import { Nullable } from '../../../shared/contract/fields.ts';
import { defineOperation } from '../../../shared/contract/operation.ts';
import { settingExamples, settingFields, settingInputs } from './account-settings.ts';
import { DryRunQuery, dryRunQuery, dryRuns } from './dry-run.ts';
import {
  Moment,
  OptionalMoment,
  PageOfAdmin,
  Reason,
  ReasonQuery,
  Roubles,
  maxAmount,
  pageQuery,
} from './fields.ts';

const maxRequests = 1_000_000_000;

const accountFields = {
  id: Type.String(),
  user_type: Type.String(),
  balance: Roubles('The balance in roubles, including amounts reserved for requests in progress.'),
  reserved: Roubles(
    'The part of the balance that is reserved for requests, jobs and batches in progress, in roubles.',
  ),
  total_balance_added: Roubles('The sum of all refills, in roubles.'),
  free_requests: Type.Integer(),
  requests_per_minute: Type.Integer(),
  max_queued_jobs: Type.Integer({ description: 'Maximum number of unfinished durable jobs.' }),
  weight: Type.Integer({ description: 'Of its jobs in the queue, compared with those of others.' }),
  last_used_at: OptionalMoment(
    'When it last sent a request to a model; null if it has not, or Redis has lost its data since.',
  ),
  banned: Type.Boolean(),
  ban_reason: Nullable(Type.String()),
  created_at: Moment('When it was created.'),
  ...settingFields,
};

export const AdminAccount = Type.Object(accountFields, { title: 'AdminAccount' });

/** An account with the user of the account area who has linked it. */
export const AdminAccountDetails = Type.Object(
  {
    ...accountFields,
    link: Nullable(Type.Integer({ description: 'The number under which its user sees it.' })),
    user_id: Nullable(Type.String()),
    user_email: Nullable(Type.String()),
  },
  { title: 'AdminAccountDetails' },
);

export const CreateAccountRequest = Type.Object(
  {
    ...settingInputs,
    balance: Type.Number({
      minimum: 0,
      maximum: maxAmount,
      default: 0,
      description: 'The balance to begin with, in roubles.',
    }),
    free_requests: Type.Integer({ minimum: 0, maximum: maxRequests, default: 0 }),
    requests_per_minute: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 1_000_000,
        description: 'Defaults to `DEFAULT_RPM` of the gateway.',
      }),
    ),
    user_type: Type.String({ minLength: 1, maxLength: 64, format: 'plain-text', default: 'default' }),
  },
  { title: 'CreateAccountRequest' },
);
export type CreateAccountRequest = Static<typeof CreateAccountRequest>;

export const UpdateAccountRequest = Type.Object(
  {
    ...settingInputs,
    requests_per_minute: Type.Optional(Type.Integer({ minimum: 1, maximum: 1_000_000 })),
    max_queued_jobs: Type.Optional(Type.Integer({ minimum: 0, maximum: maxQueuedJobsBound })),
    weight: Type.Optional(Type.Integer({ minimum: 1, maximum: maxWeight })),
  },
  { title: 'UpdateAccountRequest' },
);
export type UpdateAccountRequest = Static<typeof UpdateAccountRequest>;

export const AdminAccountPath = Type.Object({
  account_id: Type.String({ minLength: 1, maxLength: 100, description: 'The id of the account.' }),
});
export type AdminAccountPath = Static<typeof AdminAccountPath>;

const id = '0f7c2a1e-93f4-4c8b-a1d5-6f1f6c1d2e3a';
export const accountExample = { account_id: id };
const path = accountExample;

const account = {
  id,
  user_type: 'default',
  balance: 100,
  reserved: 0,
  total_balance_added: 100,
  free_requests: 0,
  requests_per_minute: 60,
  max_queued_jobs: 10_000,
  weight: 1,
  last_used_at: null,
  banned: false,
  ban_reason: null,
  created_at: '2026-11-21T09:15:04.000Z',
  ...settingExamples,
};
const details = { ...account, link: null, user_id: null, user_email: null };

export const createAccount = defineOperation({
  operationId: 'createAccount',
  tag: 'Admin',
  summary: 'Create an account',
  description:
    'With an `Idempotency-Key`, which is kept for ever and is the same for all tokens, a repeated call returns the same account ' +
    'instead of creating another one, also if the first call was interrupted. It must have the same body; another one is a 409. ' +
    '`api_key` is then `null` if the key has been replaced since, or keys are stored as hashes alone (`REVEAL=off`).',
  method: 'post',
  path: '/admin/accounts',
  auth: 'admin',
  adminScope: 'billing',
  permanentKey: 'optional',
  query: ReasonQuery,
  body: CreateAccountRequest,
  response: Type.Object(
    {
      ...accountFields,
      api_key: Nullable(
        Type.String({ description: 'The key that the account was created with, which is shown only here.' }),
      ),
    },
    { title: 'CreatedAccount' },
  ),
  status: 201,
  errors: ['idempotency_conflict'],
  example: {
    body: { name: 'Anna Petrova', email: 'anna@example.com', balance: 100, requests_per_minute: 60 },
    response: { ...account, api_key: 'mg-Zk3v9n1Qw8rT5yU2iO7pA4sD6fG0hJlXcVbNmQwErTy' },
  },
});

export const listAccounts = defineOperation({
  operationId: 'listAccounts',
  tag: 'Admin',
  summary: 'List and search accounts',
  description:
    'Without `search`, all accounts, newest first. With it, those whose id (from four characters on), or a word of whose name, ' +
    'address or note, begins with it; upper and lower case are the same. If it has several words, all must match; a page may then have fewer ' +
    'accounts than `limit` although there are more.',
  method: 'get',
  path: '/admin/accounts',
  auth: 'admin',
  adminScope: 'read',
  query: Type.Object({
    search: Type.Optional(
      Type.String({
        maxLength: 200,
        format: 'without-secret',
        description: 'The beginning of a word, or of an id. A key or a code: `POST /v1/admin/find`.',
      }),
    ),
    banned: Type.Optional(
      Type.Boolean({ description: 'Only accounts that are banned (`true`), or are not (`false`).' }),
    ),
    ...pageQuery,
  }),
  response: PageOfAdmin(AdminAccount),
  errors: [],
  example: {
    query: { search: 'anna', limit: 20 },
    response: { data: [account], has_more: false, last_id: id },
  },
});

export const getAccount = defineOperation({
  operationId: 'getAccount',
  tag: 'Admin',
  summary: 'Get an account',
  method: 'get',
  path: '/admin/accounts/{account_id}',
  auth: 'admin',
  adminScope: 'read',
  pathParameters: AdminAccountPath,
  response: AdminAccountDetails,
  errors: ['not_found'],
  example: { path, response: details },
});

export const updateAccount = defineOperation({
  operationId: 'updateAccount',
  tag: 'Admin',
  summary: 'Change the settings of an account',
  description:
    'Fields that are left out stay as they are; `null` clears a setting. Holds within a second everywhere.',
  method: 'patch',
  path: '/admin/accounts/{account_id}',
  auth: 'admin',
  pathParameters: AdminAccountPath,
  query: ReasonQuery,
  body: UpdateAccountRequest,
  response: AdminAccountDetails,
  errors: ['not_found'],
  example: {
    path,
    body: { requests_per_minute: 600 },
    response: { ...details, requests_per_minute: 600 },
  },
});

export const AccountCredit = Type.Object(
  {
    id: Type.String({ description: 'The id of its entry in the ledger.' }),
    account: Type.String(),
    amount: Roubles('What was added, in roubles; less was taken than requested if the account had less.'),
    free_requests: Type.Integer({ description: 'Free requests added.' }),
    note: Nullable(Type.String()),
    created_at: Moment('When it was made.'),
  },
  { title: 'AccountCredit' },
);

export const CreditRequest = Type.Object(
  {
    amount: Type.Number({
      minimum: -maxAmount,
      maximum: maxAmount,
      description:
        'In roubles, with at most nine decimals. A negative amount is taken back, at most what the account’s running requests ' +
        'have not reserved.',
    }),
    free_requests: Type.Integer({ minimum: -maxRequests, maximum: maxRequests, default: 0 }),
    note: Type.Optional(
      Nullable(
        Type.String({
          minLength: 1,
          maxLength: 500,
          format: 'plain-text',
          description: 'The account’s owner sees it in the refill history.',
        }),
      ),
    ),
  },
  { title: 'CreditRequest' },
);
export type CreditRequest = Static<typeof CreditRequest>;

export const creditAccount = defineOperation({
  operationId: 'creditAccount',
  tag: 'Admin',
  summary: 'Credit an account',
  description:
    'Adds money or free requests, or takes them back. The `Idempotency-Key` belongs to the account and is kept for ever, so ' +
    'that a credit can always be repeated safely.',
  method: 'post',
  path: '/admin/accounts/{account_id}/credits',
  auth: 'admin',
  adminScope: 'billing',
  permanentKey: 'required',
  pathParameters: AdminAccountPath,
  query: ReasonQuery,
  body: CreditRequest,
  response: AccountCredit,
  errors: ['not_found', 'idempotency_conflict'],
  example: {
    path,
    body: { amount: 50, note: 'invoice 1742' },
    response: {
      id: 'credit-47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU',
      account: id,
      amount: 50,
      free_requests: 0,
      note: 'invoice 1742',
      created_at: '2026-11-21T09:15:04.000Z',
    },
  },
});

export const banAccount = defineOperation({
  operationId: 'banAccount',
  tag: 'Admin',
  summary: 'Ban an account',
  description: 'Refuses its requests, and ends those in progress within two seconds.',
  method: 'post',
  path: '/admin/accounts/{account_id}/ban',
  auth: 'admin',
  pathParameters: AdminAccountPath,
  query: Type.Object(dryRunQuery),
  body: Type.Object({ reason: Reason }, { title: 'BanRequest' }),
  response: AdminAccountDetails,
  additionalResponses: [dryRuns.banAccount],
  errors: ['not_found'],
  example: {
    path,
    body: { reason: 'stolen key' },
    response: { ...details, banned: true, ban_reason: 'stolen key' },
  },
});

export const unbanAccount = defineOperation({
  operationId: 'unbanAccount',
  tag: 'Admin',
  summary: 'Lift the ban of an account',
  method: 'post',
  path: '/admin/accounts/{account_id}/unban',
  auth: 'admin',
  pathParameters: AdminAccountPath,
  query: ReasonQuery,
  response: AdminAccountDetails,
  errors: ['not_found'],
  example: { path, response: details },
});

export const unlinkAccount = defineOperation({
  operationId: 'unlinkAccount',
  tag: 'Admin',
  summary: 'Unlink an account from its user',
  description: 'The user of the account area is notified by mail. The key of the account keeps working.',
  method: 'post',
  path: '/admin/accounts/{account_id}/unlink',
  auth: 'admin',
  pathParameters: AdminAccountPath,
  query: DryRunQuery,
  response: Type.Object(
    {
      id: Type.String(),
      label: Type.String({ description: 'The name that its user gave it.' }),
      user_id: Type.String(),
      email: Nullable(Type.String()),
    },
    { title: 'UnlinkedAccount' },
  ),
  additionalResponses: [dryRuns.unlinkAccount],
  errors: ['not_found'],
  example: {
    path,
    response: {
      id,
      label: 'My account',
      user_id: 'c1d2e3f4-0000-4000-8000-000000000001',
      email: 'anna@example.com',
    },
  },
});
