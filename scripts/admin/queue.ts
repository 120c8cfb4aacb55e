import { Queue } from 'bullmq';
import { bullQueues, queueNames } from '../../shared/queue/job-kinds.ts';
import type { RedisClient } from '../../shared/redis/redis-client.ts';
import { ReadyQueue } from '../../shared/queue/ready-queue.ts';
import { WorkerRegistryStore } from '../../shared/queue/worker-registry-store.ts';
import { bullPrefix } from '../../shared/redis/redis-keys.ts';
import type { AdminContext, AdminVerb } from './command.ts';

export const queueVerbs: Record<string, AdminVerb> = {
  status: { usage: '', positionals: 0, options: [], run: showStatus },
};

async function showStatus({ redis }: AdminContext): Promise<unknown> {
  const registry = new WorkerRegistryStore(redis);
  const status: Record<string, object> = {};
  for (const name of queueNames) {
    const counts = await countJobs(redis, name === 'chat' ? ['chat'] : bullQueues[name]);
    const alive = await registry.findAlive(name);
    // Interactive chats wait in a list of their own and run without BullMQ's knowledge.
    const interactive = name === 'chat' ? await new ReadyQueue(redis).countWaiting() : 0;
    const interactiveActive = name === 'chat' ? await registry.countActive('chat') : 0;
    status[name] = {
      waiting: (counts['waiting'] ?? 0) + (counts['prioritized'] ?? 0) + interactive,
      active: (counts['active'] ?? 0) + interactiveActive,
      delayed: counts['delayed'] ?? 0,
      failed: counts['failed'] ?? 0,
      workers: alive.size,
    };
  }
  return status;
}

/** Over all of BullMQ's queues behind one name. */
async function countJobs(redis: RedisClient, queues: readonly string[]): Promise<Record<string, number>> {
  const sums: Record<string, number> = {};
  for (const name of queues) {
    const queue = new Queue(name, { connection: redis, prefix: bullPrefix });
    const counts = await queue.getJobCounts('waiting', 'prioritized', 'active', 'delayed', 'failed');
    for (const [state, count] of Object.entries(counts)) sums[state] = (sums[state] ?? 0) + count;
    await queue.close();
  }
  return sums;
}
