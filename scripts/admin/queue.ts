import { bullQueues, queueNames, type QueueName } from '../../shared/work/queue/job-kinds.ts';
import type { RedisClient } from '../../shared/platform/redis/redis-client.ts';
import { lanes } from '../../shared/work/queue/fair-share.ts';
import { openBullQueue } from '../../shared/work/queue/open-bull-queue.ts';
import { ReadyQueue } from '../../shared/work/queue/ready-queue.ts';
import { WorkerRegistryStore } from '../../shared/work/queue/worker-registry-store.ts';
import { UsageError, type AdminContext, type AdminVerb } from './command.ts';
import { drainCallers } from './queue-callers.ts';
import { endProgress, showProgress } from './progress.ts';
import { countJobsOf, drainJobs, listFailedJobs } from './queue-jobs.ts';
import { retryFailedJobs } from './queue-retry.ts';

export const queueVerbs: Record<string, AdminVerb> = {
  status: {
    usage: '',
    help: 'counts waiting and running requests and jobs, jobs that failed within the last day, and workers',
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
    help: 'cancels and refunds all waiting requests and jobs; running ones continue',
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

/** Cancels and refunds all waiting requests and jobs. Running work continues. */
async function drain(context: AdminContext): Promise<unknown> {
  const queue = readQueue(context);
  const requests = await drainCallers(context.redis, queue);
  return { queue, jobs: await drainJobs(context, queue), requests };
}

async function showStatus({ redis }: AdminContext): Promise<unknown> {
  const status: Record<string, object> = {};
  for (const name of queueNames) {
    status[name] = name === 'chat' ? await describeChat(redis) : await describeQueue(redis, name);
  }
  return status;
}

/** Interactive chats wait in their own list and run without BullMQ. */
async function describeChat(redis: RedisClient): Promise<object> {
  const registry = new WorkerRegistryStore(redis);
  const durable = await countJobsOf(redis, 'chat');
  const { active } = await registry.sumLoads('chat');
  const waiting = await Promise.all(lanes.map((lane) => new ReadyQueue(redis, lane).countWaiting()));
  return {
    waiting: waiting.reduce((sum, count) => sum + count, durable.waiting),
    active: durable.active + active,
    delayed: 0,
    failed: durable.failed,
    workers: (await registry.findAlive('chat')).size,
  };
}

/**
 * Sums all BullMQ queues behind the name. `bulk` shows the second one alone, which serves accounts with many requests
 * in flight.
 */
async function describeQueue(redis: RedisClient, name: keyof typeof bullQueues): Promise<object> {
  const registry = new WorkerRegistryStore(redis);
  const counts = await Promise.all(bullQueues[name].map((queue) => countJobs(redis, queue)));
  const sum = (state: keyof JobCounts): number => counts.reduce((total, one) => total + one[state], 0);
  const bulk = counts[1];
  const durable = await countJobsOf(redis, name);
  return {
    waiting: sum('waiting') + durable.waiting,
    active: sum('active') + durable.active,
    delayed: sum('delayed'),
    failed: sum('failed') + durable.failed,
    workers: (await registry.findAlive(name)).size,
    ...(bulk === undefined ? {} : { bulk: { waiting: bulk.waiting, active: bulk.active } }),
    ...(name === 'embedding' ? { inputs_waiting: (await registry.sumLoads(name)).waitingInputs } : {}),
  };
}

type JobCounts = Record<'waiting' | 'active' | 'delayed' | 'failed', number>;

async function countJobs(redis: RedisClient, name: string): Promise<JobCounts> {
  const queue = openBullQueue(name, redis);
  const counts = await queue.getJobCounts('waiting', 'prioritized', 'active', 'delayed', 'failed');
  await queue.close();
  const count = (state: string): number => counts[state] ?? 0;
  return {
    waiting: count('waiting') + count('prioritized'),
    active: count('active'),
    delayed: count('delayed'),
    failed: count('failed'),
  };
}
