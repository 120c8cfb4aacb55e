import Type, { type TProperties } from 'typebox';
import { batchStatuses } from '../../../shared/contract/batch-terms.ts';
import { Nullable, StringEnum } from '../../../shared/contract/fields.ts';
import { jobStatuses } from '../../../shared/contract/job-terms.ts';
import type { AdditionalResponse } from '../../../shared/contract/operation.ts';
import { Count, OptionalMoment, reasonQuery, Roubles } from './fields.ts';

/** Whether an operation that stops or takes away something only says what it would do. */
export const dryRunQuery = {
  dry_run: Type.Boolean({
    default: false,
    description:
      'Changes nothing, and is not in the audit log: the response says in numbers what the call would do. Needs the same scope.',
  }),
};

/** The query of such an operation. */
export const DryRunQuery = Type.Object({ ...dryRunQuery, ...reasonQuery });

/** Describes the response of an operation with `dry_run`. */
const defineDryRun = <T extends TProperties>(
  title: string,
  effects: T,
  example: Readonly<Record<keyof T, unknown>>,
  isExact = true,
): AdditionalResponse => ({
  status: 200,
  name: 'dry-run',
  response: Type.Object(
    {
      dry_run: Type.Literal(true),
      is_exact: Type.Boolean({
        description:
          'Whether the numbers are exact for this moment. Otherwise some are estimates, because exact ones take as long as ' +
          'there is work.',
      }),
      effects: Type.Object(effects),
    },
    { title },
  ),
  description: 'With `dry_run=true`: what the call would do.',
  example: {
    query: { dry_run: 'true' },
    response: { dry_run: true, is_exact: isExact, effects: example },
  },
});

/** What an entry of the ledger is. */
export const entryKinds = ['charge', 'refill'] as const;

const sessions = Count('Open sessions, which would end.');

/** What waits for models and runs, of all accounts. */
const workOfModels = {
  requests_waiting: Count('Requests with waiting callers that do not run yet.'),
  requests_running: Count('Requests with waiting callers that run.'),
  jobs_waiting: Count('Durable jobs that do not run yet.'),
  jobs_running: Count('Durable jobs that run.'),
  lines_waiting: Count('Lines of batches that do not run yet.'),
  lines_running: Count('Lines of batches that run.'),
};
const exampleWork = {
  requests_waiting: 12,
  requests_running: 64,
  jobs_waiting: 300,
  jobs_running: 8,
  lines_waiting: 0,
  lines_running: 0,
};

/** Failed jobs that are not retried. */
export const RefusedRetries = Type.Array(
  Type.Object(
    {
      why: Type.String({ description: 'Why they are not retried.' }),
      jobs: Count(),
      example: Type.Object(
        { id: Type.String(), account: Type.String() },
        { description: 'The latest of them.' },
      ),
    },
    { title: 'RefusedRetries' },
  ),
  { description: 'Jobs that are not retried, by reason. They remain failed jobs.' },
);
export const exampleRefused = [
  {
    why: 'its account is banned',
    jobs: 2,
    example: { id: '019aa6b5-2f4e-7c1d-8a3b-5d6e7f8091a2', account: '0f7c2a1e-93f4-4c8b-a1d5-6f1f6c1d2e3a' },
  },
];

/** The additional response of each operation that takes `dry_run`. */
export const dryRuns = {
  banAccount: defineDryRun(
    'DryRunOfBan',
    {
      requests: Count('Requests in progress that would end, waiting ones included.'),
      jobs_waiting: Count('Durable jobs that wait, and would be cancelled.'),
      jobs_running: Count('Durable jobs that run, and would be cancelled.'),
      batches: Count('Batches that have not ended, and would be cancelled.'),
      lines: Count('Lines of these batches that have no result yet.'),
      reserved: Roubles('What is reserved for all of these, in roubles.'),
      balance: Roubles('The balance, which stays, in roubles.'),
    },
    { requests: 3, jobs_waiting: 312, jobs_running: 8, batches: 1, lines: 4_200, reserved: 5.2, balance: 61 },
  ),
  rotateKey: defineDryRun(
    'DryRunOfRotation',
    {
      requests: Count('Requests in progress, which finish.'),
      requests_last_hour: Count('Requests of the last hour that reached a model: how much the key is used.'),
      last_used_at: OptionalMoment('When it last sent a request to a model.'),
      user_email: Nullable(
        Type.String({ description: 'The user who has linked the account, and stays linked to it.' }),
      ),
    },
    {
      requests: 3,
      requests_last_hour: 812,
      last_used_at: '2026-11-21T09:15:04.000Z',
      user_email: 'anna@example.com',
    },
  ),
  rotateWebhookSecret: defineDryRun(
    'DryRunOfWebhookSecret',
    {
      previous_until: OptionalMoment(
        'Until when a secret that was replaced before still signs, which would end at once; null if none does.',
      ),
    },
    { previous_until: null },
  ),
  unlinkAccount: defineDryRun(
    'DryRunOfUnlinkedAccount',
    {
      user_id: Type.String(),
      email: Nullable(Type.String({ description: 'Of the user, who is notified by mail.' })),
      label: Type.String({ description: 'The name that the user gave the account.' }),
      other_accounts: Count('Other accounts of the user, which stay linked.'),
    },
    { user_id: '6f1f6c1d2e3a', email: 'anna@example.com', label: 'Shop', other_accounts: 1 },
  ),
  drainQueue: defineDryRun(
    'DryRunOfDrainedQueue',
    {
      jobs: Count('Durable jobs that would be cancelled.'),
      requests: Count('Requests that would be cancelled.'),
      accounts: Count('Accounts that have any of them; if that is not exact, at least these.'),
    },
    { jobs: 300, requests: 12, accounts: 14 },
    false,
  ),
  retryQueue: defineDryRun(
    'DryRunOfRetriedQueue',
    {
      failed: Count('Durable jobs that failed within a day.'),
      jobs: Count(
        'Jobs that would be created. Each is looked at by itself: of several that the balance of one account does not pay for ' +
          'together, all count.',
      ),
      accounts: Count('Their accounts.'),
      refused: RefusedRetries,
    },
    { failed: 314, jobs: 312, accounts: 14, refused: exampleRefused },
    false,
  ),
  cancelJob: defineDryRun(
    'DryRunOfCancelledJob',
    {
      status: StringEnum(jobStatuses),
      jobs: Count('1 if it would be cancelled; 0 if it has ended.'),
      is_running: Type.Boolean({
        description: 'Whether a worker runs it: what it has cost until then is charged.',
      }),
      running_seconds: Nullable(Type.Number({ description: 'For how long.' })),
    },
    { status: 'queued', jobs: 1, is_running: false, running_seconds: null },
  ),
  cancelBatch: defineDryRun(
    'DryRunOfCancelledBatch',
    {
      status: StringEnum(batchStatuses),
      batches: Count('1 if it would be cancelled; 0 if it has ended or is stopping.'),
      lines_done: Count('Lines that have a result, which is kept.'),
      lines_left: Count('Lines without a result. Those of them that run are finished.'),
      cost: Roubles('What its lines have cost so far, in roubles.'),
      reserved: Roubles('What is reserved for lines that run, in roubles.'),
    },
    {
      status: 'in_progress',
      batches: 1,
      lines_done: 12_000,
      lines_left: 38_000,
      cost: 1.25,
      reserved: 0.02,
    },
  ),
  updateModel: defineDryRun(
    'DryRunOfModelUpdate',
    {
      is_changed: Type.Boolean({ description: 'Whether the call would change anything.' }),
      requests_last_hour: Nullable(
        Count('Requests of the last hour; null if that is not known. Those of the next would be refused.'),
      ),
      ...workOfModels,
    },
    { is_changed: true, requests_last_hour: 1_204, ...exampleWork },
    false,
  ),
  drainUpstream: defineDryRun(
    'DryRunOfDrainedUpstream',
    {
      calls: Count('Calls of these routes that run, in all workers. They continue.'),
      models: Type.Array(Type.String(), { description: 'Models with a route that would be drained.' }),
      models_without_route: Type.Array(Type.String(), {
        description: 'Those of them that would have no route left, and would no longer be active.',
      }),
      ...workOfModels,
    },
    { calls: 40, models: ['gpt-4o-mini', 'gpt-4o'], models_without_route: ['gpt-4o'], ...exampleWork },
    false,
  ),
  revokeToken: defineDryRun(
    'DryRunOfRevokedToken',
    {
      is_changed: Type.Boolean({ description: 'False if it is revoked already.' }),
      sessions,
      last_changed_at: OptionalMoment('When it last changed something, according to the audit log.'),
    },
    { is_changed: true, sessions: 2, last_changed_at: '2026-11-21T09:15:04.000Z' },
  ),
  banUser: defineDryRun(
    'DryRunOfBannedUser',
    { sessions, accounts: Count('Linked accounts, whose keys keep working.') },
    { sessions: 2, accounts: 1 },
  ),
  discardDeadEntry: defineDryRun(
    'DryRunOfDiscardedEntry',
    {
      kind: Nullable(StringEnum(entryKinds, { description: 'Null if it is neither.' })),
      counted: Type.Boolean({
        description: 'Whether its amounts are in the balance. Then no money is lost.',
      }),
      is_credited_again: Type.Boolean({
        description:
          'Whether the gateway credits it again by itself, or has. Then no money is lost: do not credit the account.',
      }),
      uncharged: Nullable(
        Roubles(
          'What a customer was served for and would not be charged, in roubles; null if it is unreadable.',
        ),
      ),
      uncredited: Nullable(Roubles('What an account would not get, in roubles; null if it is unreadable.')),
      free_requests: Nullable(
        Type.Integer({ description: 'Free requests that would not be taken or added; null if unreadable.' }),
      ),
      entries_left: Count('Other entries that could not be read, which stay.'),
    },
    {
      kind: 'charge',
      counted: false,
      is_credited_again: false,
      uncharged: 0.42,
      uncredited: 0,
      free_requests: 0,
      entries_left: 2,
    },
  ),
  endSessions: defineDryRun('DryRunOfEndedSessions', { sessions }, { sessions: 2 }),
  revokeCodes: defineDryRun(
    'DryRunOfRevokedCodes',
    {
      codes: Count('Codes that would be revoked: those that can still be redeemed.'),
      redeemed: Count('Codes that have been redeemed, and stay so.'),
      balance: Roubles('What the codes that would be revoked are worth together, in roubles.'),
      free_requests: Type.Integer({ description: 'The same in free requests.' }),
    },
    { codes: 7, redeemed: 3, balance: 350, free_requests: 0 },
  ),
} as const;
