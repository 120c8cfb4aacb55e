import Type, { type Static } from 'typebox';
import { maxCodesOfBatch, refillCodeStates } from '../../../shared/contract/admin-terms.ts';
import { Nullable, StringEnum } from '../../../shared/contract/fields.ts';
import { defineOperation } from '../../../shared/contract/operation.ts';
import { DryRunQuery, dryRuns } from './dry-run.ts';
import {
  AccountName,
  Count,
  IdInQuery,
  maxAmount,
  Moment,
  OptionalMoment,
  PageOfAdmin,
  pageQuery,
  ReasonQuery,
  Roubles,
} from './fields.ts';

const AdminCode = Type.Object(
  {
    id: Type.String({ description: 'The hash of the code, which does not reveal it.' }),
    code: Type.String({ description: 'The end of the code.' }),
    balance: Roubles('What it is worth, in roubles.'),
    free_requests: Type.Integer(),
    created_at: Moment('When it was created.'),
    expires_at: OptionalMoment('Until when it can be redeemed.'),
    status: StringEnum(refillCodeStates),
    redeemed_by: Nullable(Type.String({ description: 'The id of the account.' })),
    account_name: AccountName,
    redeemed_at: OptionalMoment('When it was redeemed.'),
    batch: Nullable(
      Type.String({
        description:
          'The call that created it: `GET /v1/admin/audit?resource=code:{batch}` says who made it. Null for codes of earlier releases.',
      }),
    ),
  },
  { title: 'AdminCode' },
);

const id = 'ungWv48Bz-pBQUDeXa4iI7ADYaOWF3qctBD_YfIAFa0';
const batch = '0b7e2f7a-6d0c-4e55-9a53-8a5c7f1f5b1e';
const code = {
  id,
  code: '…2VBH',
  balance: 50,
  free_requests: 0,
  created_at: '2026-11-21T09:15:04.000Z',
  expires_at: null,
  status: 'unused',
  redeemed_by: null,
  account_name: null,
  redeemed_at: null,
  batch,
};

export const CreateCodesRequest = Type.Object(
  {
    balance: Type.Number({
      minimum: 0,
      maximum: maxAmount,
      default: 0,
      description: 'What each code is worth, in roubles.',
    }),
    free_requests: Type.Integer({ minimum: 0, maximum: 1_000_000_000, default: 0 }),
    count: Type.Integer({
      minimum: 1,
      maximum: maxCodesOfBatch,
      default: 1,
      description: 'How many to create.',
    }),
    expires_at: Type.Optional(
      Nullable(Type.String({ format: 'date-time', description: 'Until when they can be redeemed.' })),
    ),
  },
  { title: 'CreateCodesRequest' },
);
export type CreateCodesRequest = Static<typeof CreateCodesRequest>;

export const createRefillCodes = defineOperation({
  operationId: 'createRefillCodes',
  tag: 'Admin',
  summary: 'Create refill codes',
  description:
    'With an `Idempotency-Key`, which is kept for ever and is the same for all tokens, a repeated call with the same body creates ' +
    'no others; another body is a 409, as is any once the batch is revoked. For a day it returns the same codes. Later, or if secrets are not stored ' +
    '(`REVEAL=off`), `codes` is `null`: revoke those of the `ids` that you do not know, and create others with another key.',
  method: 'post',
  path: '/admin/codes',
  auth: 'admin',
  adminScope: 'billing',
  permanentKey: 'optional',
  query: ReasonQuery,
  body: CreateCodesRequest,
  response: Type.Object(
    {
      codes: Nullable(Type.Array(Type.String(), { description: 'The codes, which are shown only here.' })),
      ids: Type.Array(Type.String(), { description: 'Their ids, in the same order.' }),
      batch: Type.String({ description: 'What the audit log names this creation by.' }),
    },
    { title: 'CreatedCodes' },
  ),
  status: 201,
  errors: ['idempotency_conflict'],
  example: {
    body: { balance: 50, count: 1 },
    response: { codes: ['7KQM-9XFD-3TRW-M8PA-2VBH'], ids: [id], batch },
  },
});

export const listRefillCodes = defineOperation({
  operationId: 'listRefillCodes',
  tag: 'Admin',
  summary: 'List refill codes',
  method: 'get',
  path: '/admin/codes',
  auth: 'admin',
  adminScope: 'read',
  query: Type.Object({
    status: Type.Optional(
      StringEnum(refillCodeStates, {
        description: 'Only those with this status; `unused` are those that can still be redeemed.',
      }),
    ),
    batch: Type.Optional(IdInQuery('Only those that this call created.')),
    ...pageQuery,
  }),
  response: PageOfAdmin(AdminCode),
  errors: [],
  example: { query: { limit: 20 }, response: { data: [code], has_more: false, last_id: id } },
});

export const revokeRefillCode = defineOperation({
  operationId: 'revokeRefillCode',
  tag: 'Admin',
  summary: 'Revoke a refill code',
  description: 'A code that was redeemed cannot be revoked.',
  method: 'post',
  path: '/admin/codes/{code_id}/revoke',
  auth: 'admin',
  adminScope: 'billing',
  pathParameters: Type.Object({
    code_id: Type.String({ minLength: 1, maxLength: 100, description: 'The `id` of the code.' }),
  }),
  query: DryRunQuery,
  response: AdminCode,
  additionalResponses: [dryRuns.revokeCodes],
  errors: ['not_found', 'validation_failed'],
  example: { path: { code_id: id }, response: { ...code, status: 'revoked' } },
});

export const revokeCodesOfBatch = defineOperation({
  operationId: 'revokeCodesOfBatch',
  tag: 'Admin',
  summary: 'Revoke all codes of a call',
  description:
    'Revokes the codes that one call of `POST /v1/admin/codes` or `admin code create` made, except those that were redeemed.',
  method: 'post',
  path: '/admin/codes/batches/{batch}/revoke',
  auth: 'admin',
  adminScope: 'billing',
  pathParameters: Type.Object({
    batch: Type.String({ minLength: 1, maxLength: 100, description: 'The `batch` of the codes.' }),
  }),
  query: DryRunQuery,
  response: Type.Object(
    { batch: Type.String(), codes: Count('Codes that were revoked now.') },
    { title: 'RevokedCodes' },
  ),
  additionalResponses: [dryRuns.revokeCodes],
  errors: ['not_found'],
  example: { path: { batch }, response: { batch, codes: 10 } },
});
