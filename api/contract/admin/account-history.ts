import Type from 'typebox';
import { Nullable, StringEnum } from '../../../shared/contract/fields.ts';
import { defineOperation } from '../../../shared/contract/operation.ts';
import { refillSources } from '../../../shared/ledger/refill-rows.ts';
import { AdminAccountPath } from './accounts.ts';
import { Count, Moment, PageOfAdmin, Roubles, pageQuery } from './fields.ts';

const path = { account_id: '0f7c2a1e-93f4-4c8b-a1d5-6f1f6c1d2e3a' };

const AdminRefill = Type.Object(
  {
    id: Type.String({ description: 'The id of its entry in the ledger.' }),
    created_at: Moment('When it was made.'),
    source: StringEnum(refillSources, {
      description:
        'An `operator`, a redeemed `code`, or the `signup`. The balance that an account begins with is one, too.',
    }),
    amount: Roubles('What was added, in roubles; negative if money was taken back.'),
    free_requests: Type.Integer(),
    code: Nullable(Type.String({ description: 'The code, as issued; it is worth nothing any more.' })),
    note: Nullable(Type.String({ description: 'What the operator noted.' })),
    token: Nullable(
      Type.String({
        description:
          'The name of the operator’s token; `command` for the admin command. Null for codes, and for those before the update that brought this field.',
      }),
    ),
  },
  { title: 'AdminRefill' },
);

export const listAccountRefills = defineOperation({
  operationId: 'listAccountRefills',
  tag: 'Admin',
  summary: 'List the refills of an account',
  description: 'Credits of operators, redeemed codes and the sign-up, for ever. Refills appear at once.',
  method: 'get',
  path: '/admin/accounts/{account_id}/refills',
  auth: 'admin',
  adminScope: 'read',
  pathParameters: AdminAccountPath,
  query: Type.Object({
    search: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 100,
        format: 'without-secret',
        description:
          'Only those whose note or code has this text. A page reads at most 1 000 refills, so it may have fewer than `limit`, or ' +
          'none, and `has_more` all the same.',
      }),
    ),
    ...pageQuery,
  }),
  response: PageOfAdmin(AdminRefill),
  errors: ['not_found'],
  example: {
    path,
    query: { limit: 20 },
    response: {
      data: [
        {
          id: 'credit-47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU',
          created_at: '2026-11-21T09:15:04.000Z',
          source: 'operator',
          amount: 50,
          free_requests: 0,
          code: null,
          note: 'invoice 1742',
          token: 'billing-system',
        },
      ],
      has_more: true,
      last_id: '2',
    },
  },
});

const AccountAddress = Type.Object(
  {
    address: Type.String({ description: 'Of the callers.' }),
    requests: Count('Lines of batches count one by one.'),
    failed: Count('Those of them that failed or were rejected.'),
    first_at: Moment('Of the admission of the first of them.'),
    last_at: Moment('Of the last one.'),
    cost: Roubles('What they cost, in roubles.'),
  },
  { title: 'AdminAccountAddress' },
);

export const listAccountAddresses = defineOperation({
  operationId: 'listAccountAddresses',
  tag: 'Admin',
  summary: 'List the addresses that an account was used from',
  description:
    'From the newest 10 000 rows of the request log of the last 72 hours. At most 20 addresses, those with the most requests ' +
    'first.',
  method: 'get',
  path: '/admin/accounts/{account_id}/addresses',
  auth: 'admin',
  adminScope: 'read',
  pathParameters: AdminAccountPath,
  response: Type.Object(
    {
      since: Moment('The admission of the oldest request that is counted may be no earlier.'),
      is_complete: Type.Boolean({ description: 'False if there are older requests that are not counted.' }),
      addresses: Count('How many addresses there are, also those that are left out.'),
      data: Type.Array(AccountAddress),
    },
    { title: 'AdminAccountAddresses' },
  ),
  errors: ['not_found'],
  example: {
    path,
    response: {
      since: '2026-11-18T09:15:04.000Z',
      is_complete: true,
      addresses: 1,
      data: [
        {
          address: '203.0.113.17',
          requests: 1_204,
          failed: 3,
          first_at: '2026-11-18T10:02:11.000Z',
          last_at: '2026-11-21T09:15:04.000Z',
          cost: 49.36,
        },
      ],
    },
  },
});
