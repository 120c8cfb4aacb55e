import type { CatalogStore } from '../catalog/catalog-store.ts';
import type { RedisClient } from '../platform/redis/redis-client.ts';
import type { Demand, WorkDemand } from '../work/demand/demand.ts';
import { readDemand } from '../work/demand/read-demand.ts';
import { summarizeQueue, toSeconds } from '../work/demand/summarize-demand.ts';
import { bullQueues, queueNames, type QueueName } from '../work/queue/job-kinds.ts';
import { withBullQueue } from '../work/queue/open-bull-queue.ts';
import { WorkerRegistryStore } from '../work/queue/worker-registry-store.ts';
import type { AuditTrail } from './audit-trail.ts';
import { drainCallers } from './queue-callers.ts';
import { countFailedJobs, drainJobs } from './queue-jobs.ts';
import { drainSlotWaiters } from './queue-slots.ts';

interface Deps {
  readonly redis: RedisClient;
}

/** What was cancelled when a queue was drained. */
export interface DrainedQueue {
  readonly queue: QueueName;
  /** Durable jobs. */
  readonly jobs: number;
  /** Requests whose callers waited. */
  readonly requests: number;
}

/** More than it takes, unless callers send new requests all the time. */
const maxDrainRounds = 20;

/** Cancels and refunds all waiting requests and jobs, also those that wait for a call slot. Running work continues. */
export async function drainQueue(
  { redis }: Deps,
  trail: AuditTrail,
  queue: QueueName,
): Promise<DrainedQueue> {
  return await trail.run(
    { action: 'queue.drain', id: queue },
    async () => {
      let [jobs, requests] = [0, 0];
      // When calls no longer wait for slots, their worker takes what was still in the queue.
      for (let round = 0; round < maxDrainRounds; round++) {
        const callers = await drainCallers(redis, queue);
        const waiting = await drainJobs(redis, queue);
        const held = await drainSlotWaiters(redis, queue);
        requests += callers + held.requests;
        jobs += waiting + held.jobs;
        if (callers + waiting + held.requests + held.jobs === 0) break;
      }
      return { queue, jobs, requests };
    },
    ({ jobs, requests }) => ({ jobs, requests }),
  );
}

/** Describes all queues by name. */
export async function describeQueues(
  deps: Deps,
  catalog: Pick<CatalogStore, 'current' | 'find'>,
): Promise<Record<QueueName, DescribedQueue>> {
  const demand = await readDemand({ redis: deps.redis, catalog });
  const described = queueNames.map(
    async (queue) => [queue, await describeQueue(deps, demand, queue)] as const,
  );
  return Object.fromEntries(await Promise.all(described)) as Record<QueueName, DescribedQueue>;
}

/**
 * Requests and durable jobs. Those that wait for their vendor's limit wait, although a worker has taken them. Lines of
 * batches are counted apart, because `drain` does not cancel them.
 */
async function describeQueue({ redis }: Deps, demand: Demand, queue: QueueName) {
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
export type DescribedQueue = Awaited<ReturnType<typeof describeQueue>>;

/** Chats run without BullMQ. */
async function countInBull(
  redis: RedisClient,
  queue: QueueName,
): Promise<{ readonly delayed: number; readonly failed: number }> {
  const sums = { delayed: 0, failed: 0 };
  if (queue === 'chat') return sums;
  for (const name of bullQueues[queue]) {
    const { delayed = 0, failed = 0 } = await withBullQueue(name, redis, (bull) =>
      bull.getJobCounts('delayed', 'failed'),
    );
    sums.delayed += delayed;
    sums.failed += failed;
  }
  return sums;
}
