import { dryRunCancelJob } from '../../shared/admin/dry-run-work.ts';
import { cancelJob, listJobs, searchJobOwner, showJob } from '../../shared/admin/jobs.ts';
import { readPlace, type OwnedId } from '../../shared/admin/list-place.ts';
import { readPages } from '../../shared/admin/page.ts';
import { jobStatuses } from '../../shared/contract/job-terms.ts';
import { quote } from '../../shared/platform/runtime/to-printable.ts';
import {
  CommandError,
  readInteger,
  UsageError,
  type AdminContext,
  type AdminVerb,
  type ChangeContext,
} from './command.ts';
import { findAccountId } from './find-account.ts';

/** Jobs that are read together. */
const pageSize = 100;

export const jobVerbs: Record<string, AdminVerb> = {
  list: {
    usage: '[--account <account>] [--status failed] [--limit 100]',
    help: 'lists the latest jobs of an account, or of all accounts with one status: queued, active, succeeded, failed or cancelled',
    positionals: 0,
    options: ['account', 'status', 'limit'],
    columns: [
      'id',
      'account',
      'status',
      'operation',
      'model',
      'created_at',
      'attempts',
      'cost',
      'error_code',
    ],
    run: list,
  },
  show: {
    usage: '<job>',
    help: 'shows a job: its times, attempts, worker, error, cost and webhook',
    positionals: 1,
    options: [],
    run: show,
  },
  cancel: {
    usage: '<job> [--dry-run]',
    help: 'cancels a job; if it is running, its worker ends it, and what it has cost until then is charged; --dry-run only says whether it runs',
    positionals: 1,
    options: [],
    flags: ['dry-run'],
    isChange: true,
    run: cancel,
  },
};

async function list(context: AdminContext): Promise<unknown> {
  const { options, warn } = context;
  const { account } = options;
  const status = jobStatuses.find((known) => known === options['status']) ?? null;
  if (options['status'] !== undefined && status === null)
    throw new UsageError(`--status must be one of ${jobStatuses.join(', ')}.`);
  if (account === undefined && status === null) throw new UsageError('Specify --account, --status or both.');
  const limit = readInteger(options, 'limit', 100, 1);
  const accountId = account === undefined ? null : await findAccountId(context, account);
  const pages = readPages((after) => {
    const place = after === null ? null : readPlace(after);
    return listJobs(context, { accountId, status }, { limit: Math.min(limit, pageSize), after: place });
  });
  return takeJobs(pages, limit, warn);
}

async function* takeJobs(
  jobs: AsyncIterable<object>,
  limit: number,
  warn: AdminContext['warn'],
): AsyncGenerator<object> {
  let printed = 0;
  for await (const job of jobs) {
    if (printed === limit) {
      warn(`These are the latest ${limit} jobs, and there are more; see --limit.`);
      return;
    }
    printed += 1;
    yield job;
  }
}

/** @throws CommandError if there is no such job */
async function findOwner(context: AdminContext): Promise<OwnedId> {
  const id = context.positionals[0]!;
  const owner = await searchJobOwner(context, id);
  if (owner !== null) return owner;
  throw new CommandError(
    `No job ${quote(id)}. Jobs are kept for 24 hours after they end; requests without "Prefer: respond-async" are not jobs.`,
  );
}

async function describe(context: AdminContext, owner: OwnedId): Promise<object> {
  const job = await showJob(context, owner);
  if (job === null) throw new CommandError(`The job ${owner.id} no longer exists.`);
  return job;
}

async function show(context: AdminContext): Promise<unknown> {
  return await describe(context, await findOwner(context));
}

async function cancel(context: ChangeContext): Promise<unknown> {
  const owner = await findOwner(context);
  if (context.flags.has('dry-run')) return await dryRunCancelJob(context, owner);
  await cancelJob(context, context.trail, owner);
  return await describe(context, owner);
}
