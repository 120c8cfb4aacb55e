import type { BanWatch } from '../../shared/accounts/ban-watch.ts';
import { countQueuedRuns } from '../../shared/queue/fair-share.ts';
import { bullQueues, type QueueName } from '../../shared/queue/job-kinds.ts';
import type { RedisClient } from '../../shared/redis/redis-client.ts';
import type { ReplyPublisher } from '../../shared/reply/reply-channel.ts';
import type { Running } from '../../shared/runtime/lifecycle.ts';
import type { JobDependencies } from '../jobs/job-context.ts';
import type { ActiveRuns } from './active-runs.ts';
import { startQueuedIntake } from './take-queued.ts';
import { startReadyIntake } from './take-ready.ts';

export interface IntakesOptions {
  readonly dependencies: JobDependencies;
  readonly publisher: ReplyPublisher;
  readonly bans: BanWatch;
  readonly runsByQueue: ReadonlyMap<QueueName, ActiveRuns>;
  /** Requests that run at once, of each queue. */
  readonly concurrency: number;
  readonly connectBlocking: () => Promise<RedisClient>;
}

/** Takes what callers wait for, off all queues that the worker serves. */
export async function startIntakes(options: IntakesOptions): Promise<Running[]> {
  const { dependencies, publisher, bans, runsByQueue, concurrency, connectBlocking } = options;
  const intakes: Running[] = [];
  for (const [queue, runs] of runsByQueue) {
    const common = { dependencies, publisher, runs, bans };
    if (queue === 'chat') {
      intakes.push(startReadyIntake({ ...common, blocking: await connectBlocking(), concurrency }));
      continue;
    }
    for (const bullQueue of bullQueues[queue]) {
      const blocking = await connectBlocking();
      const runsAtOnce = countQueuedRuns(bullQueue, concurrency);
      intakes.push(startQueuedIntake({ ...common, blocking, queue: bullQueue, concurrency: runsAtOnce }));
    }
  }
  return intakes;
}
