import { dryRunCancelJob } from '../../shared/admin/dry-run-work.ts';
import { cancelJob, searchJobOwner, showJob } from '../../shared/admin/jobs.ts';
import type { OwnedId } from '../../shared/admin/list-place.ts';
import { quote } from '../../shared/platform/runtime/to-printable.ts';
import { CommandError, type AdminContext, type AdminVerb } from './command.ts';

export const jobVerbs: Record<string, AdminVerb> = {
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
    run: cancel,
  },
};

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

async function cancel(context: AdminContext): Promise<unknown> {
  const owner = await findOwner(context);
  if (context.flags.has('dry-run')) return await dryRunCancelJob(context, owner);
  await cancelJob(context, context.trail, owner);
  return await describe(context, owner);
}
