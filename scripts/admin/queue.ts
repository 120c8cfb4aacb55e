import { dryRunDrainQueue } from '../../shared/admin/dry-run-work.ts';
import { listFailedJobs } from '../../shared/admin/failed-jobs.ts';
import { describeQueues, drainQueue } from '../../shared/admin/queues.ts';
import { dryRunRetryFailedJobs, retryFailedJobs } from '../../shared/admin/retry-failed-jobs.ts';
import { liveness } from '../../shared/platform/redis/liveness.ts';
import { queueNames, type QueueName } from '../../shared/work/queue/job-kinds.ts';
import { listQueuesInUse } from '../../shared/work/queue/queues-in-use.ts';
import { UsageError, type AdminContext, type AdminVerb, type ChangeContext } from './command.ts';
import { endProgress, showProgress } from './progress.ts';
import { withCatalog } from './with-catalog.ts';

export const queueVerbs: Record<string, AdminVerb> = {
  status: {
    usage: '',
    help: 'counts waiting and running requests, jobs and lines of batches, jobs that failed within the last day, and workers by version',
    positionals: 0,
    options: [],
    run: showStatus,
  },
  failed: {
    usage: '<queue>',
    help: 'lists the jobs that failed within the last day, and why',
    positionals: 1,
    options: [],
    run: showFailed,
  },
  retry: {
    usage: '<queue> [--dry-run]',
    help: 'creates a new job for each failed one, if another attempt may succeed; --dry-run only counts them',
    positionals: 1,
    options: [],
    flags: ['dry-run'],
    isChange: true,
    run: retry,
  },
  drain: {
    usage: '<queue> [--dry-run]',
    help: 'cancels and refunds all waiting requests and jobs, also those that wait for a call slot; running ones continue; --dry-run only counts them',
    positionals: 1,
    options: [],
    flags: ['dry-run'],
    isChange: true,
    run: drain,
  },
};

function readQueue({ positionals: [name = ''] }: AdminContext): QueueName {
  const queue = queueNames.find((known) => known === name);
  if (queue === undefined)
    throw new UsageError(`There is no queue "${name}". There are: ${queueNames.join(', ')}.`);
  return queue;
}

/** Lists jobs that failed within the last day, with the reason. */
async function showFailed(context: AdminContext): Promise<unknown> {
  return listFailedJobs(context.redis, readQueue(context));
}

/** Creates a new job for each failed one. Reserves and charges as usual. */
async function retry(context: ChangeContext): Promise<unknown> {
  const queue = readQueue(context);
  const onProgress = (jobs: number): void => showProgress(`${jobs} jobs processed`);
  const result = context.flags.has('dry-run')
    ? await dryRunRetryFailedJobs(context, queue, { onProgress })
    : await retryFailedJobs(context, context.trail, queue, { onProgress });
  endProgress();
  if ('dry_run' in result) return result;
  const { retried, refused } = result;
  return { retried, refused };
}

async function drain(context: ChangeContext): Promise<unknown> {
  const queue = readQueue(context);
  if (context.flags.has('dry-run'))
    return await withCatalog(context, (catalog) => dryRunDrainQueue(context, catalog, queue));
  return await drainQueue(context, context.trail, queue);
}

async function showStatus(context: AdminContext): Promise<unknown> {
  return await withCatalog(context, async (catalog) => {
    const queues = await describeQueues(context, catalog);
    for (const queue of listQueuesInUse(catalog))
      if (queues[queue].workers === 0) warnOfAbsence(context, queue);
    return queues;
  });
}

function warnOfAbsence({ warn }: AdminContext, queue: QueueName): void {
  const seconds = liveness.queue.unservedMs / 1_000;
  warn(
    `No worker takes ${queue} requests. Callers get a 503 after ${seconds} s, and the next worker discards what they ` +
      'leave in the queue, without a charge. Durable jobs and batches wait for a worker.',
  );
}
