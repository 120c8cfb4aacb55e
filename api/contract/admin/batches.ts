import Type from 'typebox';
import { batchStatuses } from '../../../shared/contract/batch-terms.ts';
import { Nullable, StringEnum } from '../../../shared/contract/fields.ts';
import { defineOperation } from '../../../shared/contract/operation.ts';
import { dryRunQuery, dryRuns } from './dry-run.ts';
import {
  AccountName,
  Count,
  IdInQuery,
  Moment,
  OptionalMoment,
  PageOfAdmin,
  Roubles,
  pageQuery,
  reasonQuery,
} from './fields.ts';
import { ownerQuery } from './work.ts';

const accountId = '0f7c2a1e-93f4-4c8b-a1d5-6f1f6c1d2e3a';

const batchFields = {
  id: Type.String(),
  account: Type.String(),
  account_name: AccountName,
  status: StringEnum(batchStatuses),
  endpoint: Type.String(),
  model: Type.String(),
  lines_total: Count(),
  lines_failed: Count('Lines in the error file.'),
  lines_not_run: Count('The part of them that was not run, such as after the batch was cancelled.'),
  cost: Roubles('What its lines have cost so far, in roubles.'),
  reserved: Roubles('What is reserved for lines that run, in roubles.'),
  created_at: Moment('When it was created.'),
};

const AdminBatchRow = Type.Object(
  {
    ...batchFields,
    lines_done: Count(),
    ended_at: OptionalMoment('When it ended.'),
    age_seconds: Count(),
    eta_seconds: Nullable(Type.Number()),
  },
  { title: 'AdminBatchRow' },
);

const AdminBatch = Type.Object(
  {
    ...batchFields,
    lines_succeeded: Count(),
    stopped_because: Nullable(Type.String()),
    input_file: Type.String(),
    output_file: Nullable(Type.String()),
    error_file: Nullable(Type.String()),
    models: Type.Array(Type.Unsafe<object>({ type: 'object' }), { description: 'Sums by model.' }),
    slices: Type.Array(Type.Unsafe<object>({ type: 'object' }), {
      description: 'Parts of the file that workers have, or that wait to be taken again.',
    }),
  },
  { title: 'AdminBatch' },
);

const batchId = 'batch_0123456789abcdef0123456789abcdef';
const batch = {
  id: batchId,
  account: accountId,
  account_name: 'Example Ltd',
  status: 'in_progress',
  endpoint: '/v1/embeddings',
  model: 'text-embedding-3-small',
  lines_total: 50_000,
  lines_failed: 2,
  lines_not_run: 0,
  cost: 1.25,
  reserved: 0.02,
  created_at: '2026-11-21T09:15:04.000Z',
};
const row = { ...batch, lines_done: 12_000, ended_at: null, age_seconds: 61, eta_seconds: 190 };
const whole = {
  ...batch,
  lines_succeeded: 11_998,
  stopped_because: null,
  input_file: 'file-0123456789abcdef0123456789abcdef',
  output_file: null,
  error_file: null,
  models: [],
  slices: [],
};

const batchPath = Type.Object({
  batch_id: Type.String({ minLength: 1, maxLength: 100, description: 'The id of the batch.' }),
});
const ofBatch = { path: { batch_id: batchId } };

export const listAdminBatches = defineOperation({
  operationId: 'listAdminBatches',
  tag: 'Admin',
  summary: 'List batches',
  description:
    'Those that have not ended, newest first; with `status` those with one status, ended ones included. A page reads at most ' +
    '1 000 batches, so one of a rare status may have fewer than `limit`, or none, and `has_more` all the same.',
  method: 'get',
  path: '/admin/batches',
  auth: 'admin',
  adminScope: 'read',
  query: Type.Object({
    account: Type.Optional(IdInQuery('Only of this account.')),
    status: Type.Optional(StringEnum(batchStatuses)),
    ...pageQuery,
  }),
  response: PageOfAdmin(AdminBatchRow),
  errors: ['not_found'],
  example: {
    query: { limit: 20 },
    response: { data: [row], has_more: false, last_id: `1795252504000:${accountId}:${batchId}` },
  },
});

export const getAdminBatch = defineOperation({
  operationId: 'getAdminBatch',
  tag: 'Admin',
  summary: 'Get a batch',
  method: 'get',
  path: '/admin/batches/{batch_id}',
  auth: 'admin',
  adminScope: 'read',
  pathParameters: batchPath,
  query: ownerQuery,
  response: AdminBatch,
  errors: ['not_found'],
  example: { ...ofBatch, response: whole },
});

export const cancelAdminBatch = defineOperation({
  operationId: 'cancelAdminBatch',
  tag: 'Admin',
  summary: 'Cancel a batch',
  description:
    'Runs no more of its lines. Those that run are finished and charged, and the results so far are kept.',
  method: 'post',
  path: '/admin/batches/{batch_id}/cancel',
  auth: 'admin',
  pathParameters: batchPath,
  query: Type.Object({ ...ownerQuery.properties, ...dryRunQuery, ...reasonQuery }),
  response: AdminBatch,
  additionalResponses: [dryRuns.cancelBatch],
  errors: ['not_found'],
  example: { ...ofBatch, response: { ...whole, status: 'cancelling' } },
});

export const retryAdminBatch = defineOperation({
  operationId: 'retryAdminBatch',
  tag: 'Admin',
  summary: 'Retry the failed lines of a batch',
  description:
    'Creates a new batch of the failed lines of a batch that has ended, at the current prices. The balance of its account must ' +
    'pay for it. A batch is retried once. With any `Idempotency-Key`, a repeated call returns the batch that was created; ' +
    'without one, it is a 422 that names it.',
  method: 'post',
  path: '/admin/batches/{batch_id}/retry',
  auth: 'admin',
  permanentKey: 'optional',
  pathParameters: batchPath,
  query: Type.Object({ ...ownerQuery.properties, ...reasonQuery }),
  response: AdminBatch,
  errors: ['not_found', 'validation_failed', 'too_many_jobs'],
  example: { ...ofBatch, response: { ...whole, status: 'in_progress', lines_total: 2 } },
});
