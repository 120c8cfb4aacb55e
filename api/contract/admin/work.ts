import Type from 'typebox';
import { Nullable, StringEnum } from '../../../shared/contract/fields.ts';
import { jobStatuses } from '../../../shared/contract/job-terms.ts';
import { defineOperation } from '../../../shared/contract/operation.ts';
import { DryRunQuery, RefusedRetries, dryRunQuery, dryRuns, exampleRefused } from './dry-run.ts';
import {
  AccountName,
  Count,
  IdInQuery,
  Moment,
  OptionalMoment,
  PageOfAdmin,
  pageQuery,
  reasonQuery,
  Roubles,
} from './fields.ts';

const queueNames = ['chat', 'image', 'embedding'] as const;
const queuePath = Type.Object({ queue: StringEnum(queueNames) });

const AdminQueue = Type.Object(
  {
    waiting: Count('Requests and durable jobs that do not run yet.'),
    waiting_for_slot: Count('The part of them that waits for the limit of a vendor.'),
    active: Count(),
    delayed: Count(),
    failed: Count('Durable jobs that failed within a day.'),
    workers: Count('Live workers that take work off the queue.'),
    oldest_waiting_seconds: Type.Number(),
    lines_waiting: Count('Lines of batches.'),
    lines_active: Count(),
    inputs_waiting: Type.Optional(Count('Of embeddings: inputs that wait in workers.')),
    versions: Nullable(Type.String({ description: 'The versions of the workers, and how many have each.' })),
  },
  { title: 'AdminQueue' },
);

const idle = {
  waiting: 0,
  waiting_for_slot: 0,
  active: 0,
  delayed: 0,
  failed: 0,
  workers: 1,
  oldest_waiting_seconds: 0,
  lines_waiting: 0,
  lines_active: 0,
  versions: '0.1.0 (1)',
};

export const listQueues = defineOperation({
  operationId: 'listQueues',
  tag: 'Admin',
  summary: 'List queues',
  method: 'get',
  path: '/admin/queues',
  auth: 'admin',
  adminScope: 'read',
  response: Type.Object(
    { chat: AdminQueue, image: AdminQueue, embedding: AdminQueue },
    { title: 'AdminQueues' },
  ),
  errors: [],
  example: { response: { chat: { ...idle, waiting: 12, active: 64 }, image: idle, embedding: idle } },
});

export const drainQueue = defineOperation({
  operationId: 'drainQueue',
  tag: 'Admin',
  summary: 'Drain a queue',
  description:
    'Cancels and refunds all waiting requests and durable jobs, also those that wait for a call slot. Running work continues. ' +
    'Lines of batches are not cancelled.',
  method: 'post',
  path: '/admin/queues/{queue}/drain',
  auth: 'admin',
  pathParameters: queuePath,
  query: DryRunQuery,
  response: Type.Object(
    {
      queue: StringEnum(queueNames),
      jobs: Count('Durable jobs that were cancelled.'),
      requests: Count('Requests that were cancelled.'),
    },
    { title: 'DrainedQueue' },
  ),
  additionalResponses: [dryRuns.drainQueue],
  errors: [],
  example: { path: { queue: 'image' }, response: { queue: 'image', jobs: 3, requests: 12 } },
});

const AdminJob = Type.Object(
  {
    id: Type.String(),
    account: Type.String(),
    account_name: AccountName,
    status: StringEnum(jobStatuses),
    operation: Type.String(),
    queue: Type.String(),
    model: Type.String(),
    created_at: Moment('When it was created.'),
    started_at: OptionalMoment('When a worker began it.'),
    ended_at: OptionalMoment('When it ended.'),
    attempts: Count(),
    worker: Nullable(Type.String()),
    cancel_requested: Type.Boolean(),
    cost: Nullable(Roubles('What it cost, in roubles.')),
    error_code: Nullable(Type.String()),
    error_message: Nullable(Type.String()),
    webhook_url: Nullable(Type.String()),
  },
  { title: 'AdminJob' },
);

const accountId = '0f7c2a1e-93f4-4c8b-a1d5-6f1f6c1d2e3a';
const jobId = '019aa6b5-2f4e-7c1d-8a3b-5d6e7f8091a2';
const job = {
  id: jobId,
  account: accountId,
  account_name: 'Example Ltd',
  status: 'queued',
  operation: 'chat.completions',
  queue: 'chat',
  model: 'gpt-4o-mini',
  created_at: '2026-11-21T09:15:04.000Z',
  started_at: null,
  ended_at: null,
  attempts: 0,
  worker: null,
  cancel_requested: false,
  cost: null,
  error_code: null,
  error_message: null,
  webhook_url: null,
};

const failedJob = {
  ...job,
  status: 'failed',
  started_at: '2026-11-21T09:15:05.000Z',
  ended_at: '2026-11-21T09:15:09.000Z',
  attempts: 1,
  error_code: 'upstream_error',
  error_message: 'The model could not be reached.',
};

export const listFailedJobsOfQueue = defineOperation({
  operationId: 'listFailedJobsOfQueue',
  tag: 'Admin',
  summary: 'List failed jobs of a queue',
  description:
    'Durable jobs that failed within a day, the latest first. Those that were retried are not among them.',
  method: 'get',
  path: '/admin/queues/{queue}/failed',
  auth: 'admin',
  adminScope: 'read',
  pathParameters: queuePath,
  query: Type.Object(pageQuery),
  response: PageOfAdmin(AdminJob),
  errors: [],
  example: {
    path: { queue: 'chat' },
    query: { limit: 20 },
    response: { data: [failedJob], has_more: false, last_id: `1795252509000:${accountId}:${jobId}` },
  },
});

export const retryQueue = defineOperation({
  operationId: 'retryQueue',
  tag: 'Admin',
  summary: 'Retry the failed jobs of a queue',
  description:
    'Creates a new job for each durable job that failed within a day, if another attempt may succeed. It ' +
    'reserves and charges as usual. A job is retried once, so a repeated call retries none twice. A call processes ' +
    '1 000 failed jobs, the latest first; if `has_more`, call again with its `last_id` as `after`.',
  method: 'post',
  path: '/admin/queues/{queue}/retry',
  auth: 'admin',
  pathParameters: queuePath,
  query: Type.Object({ ...dryRunQuery, after: pageQuery.after, ...reasonQuery }),
  response: Type.Object(
    {
      queue: StringEnum(queueNames),
      retried: Count('Jobs that were created.'),
      refused: RefusedRetries,
      has_more: Type.Boolean({ description: 'Whether there are further failed jobs.' }),
      last_id: Nullable(Type.String({ description: 'Where the next call begins: send it as `after`.' })),
    },
    { title: 'RetriedQueue' },
  ),
  additionalResponses: [dryRuns.retryQueue],
  errors: [],
  example: {
    path: { queue: 'chat' },
    response: {
      queue: 'chat',
      retried: 312,
      refused: exampleRefused,
      has_more: false,
      last_id: `1795252509000:${accountId}:${jobId}`,
    },
  },
});

const jobPath = Type.Object({
  job_id: Type.String({ minLength: 1, maxLength: 100, description: 'The id of the job.' }),
});
/** Without an account, all shards are asked for it. */
export const ownerQuery = Type.Object({
  account: Type.Optional(
    IdInQuery(
      'The id of its account, which is otherwise looked up. Needed for one that was created before the gateway noted accounts.',
    ),
  ),
});
const ofJob = { path: { job_id: jobId } };

export const listAdminJobs = defineOperation({
  operationId: 'listAdminJobs',
  tag: 'Admin',
  summary: 'List durable jobs',
  description:
    'Of an account, newest first, or of all accounts with one `status`: queued ones by the time until which they must begin, ' +
    'active ones by when their workers last reported, ended ones by their ends; the latest first. A page of all accounts reads ' +
    'at most 1 000 jobs, so it may have fewer than `limit`, or none, and `has_more` all the same. Jobs are kept for a day after ' +
    'they end.',
  method: 'get',
  path: '/admin/jobs',
  auth: 'admin',
  adminScope: 'read',
  query: Type.Object({
    account: Type.Optional(IdInQuery('Only of the account with this id. Without it, `status` is required.')),
    status: Type.Optional(StringEnum(jobStatuses, { description: 'Only those with this status.' })),
    ...pageQuery,
  }),
  response: PageOfAdmin(AdminJob),
  errors: ['not_found'],
  example: {
    query: { account: accountId, limit: 20 },
    response: { data: [job], has_more: false, last_id: `1795252504000:${accountId}:${jobId}` },
  },
});

export const getAdminJob = defineOperation({
  operationId: 'getAdminJob',
  tag: 'Admin',
  summary: 'Get a durable job',
  method: 'get',
  path: '/admin/jobs/{job_id}',
  auth: 'admin',
  adminScope: 'read',
  pathParameters: jobPath,
  query: ownerQuery,
  response: AdminJob,
  errors: ['not_found'],
  example: { ...ofJob, response: job },
});

export const cancelAdminJob = defineOperation({
  operationId: 'cancelAdminJob',
  tag: 'Admin',
  summary: 'Cancel a durable job',
  description:
    'If it runs, its worker ends it, and what it has cost until then is charged. One that has ended is not changed.',
  method: 'post',
  path: '/admin/jobs/{job_id}/cancel',
  auth: 'admin',
  pathParameters: jobPath,
  query: Type.Object({ ...ownerQuery.properties, ...dryRunQuery, ...reasonQuery }),
  response: AdminJob,
  additionalResponses: [dryRuns.cancelJob],
  errors: ['not_found'],
  example: { ...ofJob, response: { ...job, status: 'cancelled' } },
});
