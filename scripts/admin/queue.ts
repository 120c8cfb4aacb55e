import { bullQueues, queueNames, queueOfModel, type QueueName } from '../../shared/work/queue/job-kinds.ts';
import { liveness } from '../../shared/platform/redis/liveness.ts';
import type { RedisClient } from '../../shared/platform/redis/redis-client.ts';
import { openBullQueue } from '../../shared/work/queue/open-bull-queue.ts';
import type { Demand, WorkDemand } from '../../shared/work/demand/demand.ts';
import { readDemand } from '../../shared/work/demand/read-demand.ts';
import { summarizeQueue, toSeconds } from '../../shared/work/demand/summarize-demand.ts';
import { WorkerRegistryStore } from '../../shared/work/queue/worker-registry-store.ts';
import { UsageError, type AdminContext, type AdminVerb } from './command.ts';
import { drainCallers } from './queue-callers.ts';
import { drainSlotWaiters } from './queue-slots.ts';
import { endProgress, showProgress } from './progress.ts';
import { countFailedJobs, drainJobs, listFailedJobs } from './queue-jobs.ts';
import { retryFailedJobs } from './queue-retry.ts';
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
    usage: '<queue>',
    help: 'creates a new job for each failed one, if another attempt may succeed',
    positionals: 1,
    options: [],
    run: retry,
  },
  drain: {
    usage: '<queue>',
    help: 'cancels and refunds all waiting requests and jobs, also those that wait for a call slot; running ones continue',
    positionals: 1,
    options: [],
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
  return listFailedJobs(context, readQueue(context));
}

/** Creates a new job for each failed one. Reserves and charges as usual. */
async function retry(context: AdminContext): Promise<unknown> {
  const retried = await retryFailedJobs(context, readQueue(context), (jobs) =>
    showProgress(`${jobs} jobs processed`),
  );
  endProgress();
  return retried;
}

/** More than it takes, unless callers send new requests all the time. */
const maxDrainRounds = 20;

/** Cancels and refunds all waiting requests and jobs, also those that wait for a call slot. Running work continues. */
async function drain(context: AdminContext): Promise<unknown> {
  const queue = readQueue(context);
  let [jobs, requests] = [0, 0];
  // When calls no longer wait for slots, their worker takes what was still in the queue.
  for (let round = 0; round < maxDrainRounds; round++) {
    const callers = await drainCallers(context.redis, queue);
    const waiting = await drainJobs(context, queue);
    const held = await drainSlotWaiters(context.redis, queue);
    requests += callers + held.requests;
    jobs += waiting + held.jobs;
    if (callers + waiting + held.requests + held.jobs === 0) break;
  }
  return { queue, jobs, requests };
}

async function showStatus(context: AdminContext): Promise<unknown> {
  return await withCatalog(context, async (catalog) => {
    const demand = await readDemand({ redis: context.redis, catalog });
    const inUse = new Set(catalog.current.models.map(({ type }) => queueOfModel(type)));
    for (const queue of inUse) if (demand.queues[queue].workers === 0) warnOfAbsence(context, queue);
    const described = queueNames.map(
      async (queue) => [queue, await describeQueue(context, demand, queue)] as const,
    );
    return Object.fromEntries(await Promise.all(described));
  });
}

function warnOfAbsence({ warn }: AdminContext, queue: QueueName): void {
  const seconds = liveness.queue.unservedMs / 1_000;
  warn(
    `No worker takes ${queue} requests. Callers get a 503 after ${seconds} s, and the next worker discards what they ` +
      'leave in the queue, without a charge. Durable jobs and batches wait for a worker.',
  );
}

/**
 * Requests and durable jobs. Those that wait for their vendor's limit wait, although a worker has taken them. Lines of
 * batches are counted apart, because `drain` does not cancel them.
 */
async function describeQueue({ redis }: AdminContext, demand: Demand, queue: QueueName): Promise<object> {
  const { workers, versions } = demand.queues[queue];
  const isLine = ({ callClass }: WorkDemand): boolean => callClass === 'batch';
  const sums = summarizeQueue({ ...demand, work: demand.work.filter((work) => !isLine(work)) }, queue);
  const lines = summarizeQueue({ ...demand, work: demand.work.filter(isLine) }, queue);
  const bull = await countInBull(redis, queue);
  return {
    waiting: sums.waiting,
    waiting_for_slot: sums.waitingForSlot,
    active: sums.running,
    delayed: bull.delayed,
    failed: bull.failed + (await countFailedJobs(redis, queue)),
    workers,
    oldest_waiting_seconds: toSeconds(sums.oldestMs),
    lines_waiting: lines.waiting,
    lines_active: lines.running,
    ...(queue === 'embedding' && {
      inputs_waiting: (await new WorkerRegistryStore(redis).sumLoads(queue)).waitingInputs,
    }),
    versions: Array.from(versions, ([version, count]) => `${version} (${count})`).join(', ') || null,
  };
}

/** Chats run without BullMQ. */
async function countInBull(
  redis: RedisClient,
  queue: QueueName,
): Promise<{ readonly delayed: number; readonly failed: number }> {
  const sums = { delayed: 0, failed: 0 };
  if (queue === 'chat') return sums;
  for (const name of bullQueues[queue]) {
    const bull = openBullQueue(name, redis);
    const { delayed = 0, failed = 0 } = await bull.getJobCounts('delayed', 'failed');
    await bull.close();
    sums.delayed += delayed;
    sums.failed += failed;
  }
  return sums;
}
