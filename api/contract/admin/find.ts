import Type from 'typebox';
import { foundKinds } from '../../../shared/admin/find-anything.ts';
import { Nullable, StringEnum } from '../../../shared/contract/fields.ts';
import { AccountName } from './fields.ts';
import { defineOperation } from '../../../shared/contract/operation.ts';

const AdminFound = Type.Object(
  {
    kind: StringEnum(foundKinds),
    id: Type.String(),
    account: Nullable(
      Type.String({ description: 'The id of the account that it belongs to; of a code, that redeemed it.' }),
    ),
    account_name: AccountName,
    label: Nullable(
      Type.String({
        description:
          'What people call it: the name or address of an account, the address of a user, the model of a request, the end and status of a code.',
      }),
    ),
  },
  { title: 'AdminFound' },
);

const account = '0f7c2a1e-93f4-4c8b-a1d5-6f1f6c1d2e3a';
const request = '019aa6b5-2f4e-7c1d-8a3b-5d6e7f8091a2';

export const findAnything = defineOperation({
  operationId: 'findAnything',
  tag: 'Admin',
  summary: 'Find what a customer names',
  description:
    'An account by its id, its API key, its number in the account area, or the beginning of a word of its name, address or note; ' +
    'a user by id or address; a request, job or batch by id; a refill code by itself; the codes that were made together by the ' +
    'id of their batch; a token by its name; models and upstreams by a part of their names. Up to ten ids may be separated by ' +
    'blanks or commas, and `x-request-id:` before them is ignored. At most ten accounts. A key or a code in the body is in no log.',
  method: 'post',
  path: '/admin/find',
  auth: 'admin',
  adminScope: 'read',
  body: Type.Object({ text: Type.String({ minLength: 1, maxLength: 1_000, format: 'not-blank' }) }),
  response: Type.Object({
    data: Type.Array(AdminFound),
    is_unknown_key: Type.Boolean({
      description: 'Whether the text is an API key, and no account has it: it may have been replaced.',
    }),
  }),
  errors: [],
  example: {
    body: { text: request },
    response: {
      data: [{ kind: 'request', id: request, account, account_name: 'Example Ltd', label: 'gpt-4o-mini' }],
      is_unknown_key: false,
    },
  },
});
