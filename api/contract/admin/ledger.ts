import Type from 'typebox';
import { Nullable } from '../../../shared/contract/fields.ts';
import { defineOperation } from '../../../shared/contract/operation.ts';
import { AdminAccountPath } from './accounts.ts';
import { Count } from './fields.ts';

const Roubles = (what: string) => Type.String({ description: `${what}, in roubles: exact, as a decimal.` });

export const verifyAccountLedger = defineOperation({
  operationId: 'verifyAccountLedger',
  tag: 'Admin',
  summary: 'Verify the ledger of an account',
  description:
    'Adds up every entry of the ledger, also those that are not in MongoDB yet, and compares the sums with the balance and its ' +
    'reservations in MongoDB and Redis, and with the request log. Work in progress causes no differences. Changes nothing. With ' +
    'more than 5 000 entries, nothing is checked: run `admin ledger verify --account`.',
  method: 'get',
  path: '/admin/accounts/{account_id}/ledger',
  auth: 'admin',
  adminScope: 'read',
  pathParameters: AdminAccountPath,
  response: Type.Object(
    {
      entries: Count('Entries of the ledger; not counted beyond 5 001.'),
      checked: Nullable(
        Type.Object({
          added: Roubles('By codes, the sign-up and operators'),
          spent: Roubles('Charged for requests, or taken back by operators'),
          balance: Roubles('What is left'),
          difference_count: Count(),
          differences: Type.Array(
            Type.Object({
              check: Type.String({ description: 'What does not hold.' }),
              request_id: Nullable(Type.String()),
              expected: Type.String(),
              found: Type.String(),
            }),
            { description: 'The first 100.' },
          ),
        }),
      ),
    },
    { title: 'AccountLedger' },
  ),
  errors: ['not_found'],
  example: {
    path: { account_id: '0f7c2a1e-93f4-4c8b-a1d5-6f1f6c1d2e3a' },
    response: {
      entries: 1_204,
      checked: {
        added: '150',
        spent: '49.36120748',
        balance: '100.63879252',
        difference_count: 0,
        differences: [],
      },
    },
  },
});
