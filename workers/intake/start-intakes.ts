import type { BanWatch } from '../../shared/money/ban-watch.ts';
import { countQueuedRuns } from '../../shared/work/queue/fair-share.ts';
import { bullQueues, type QueueName } from '../../shared/work/queue/job-kinds.ts';
import type { RedisClient } from '../../shared/platform/redis/redis-client.ts';
import type { ReplyPublisher } from '../replies/reply-publisher.ts';
import type { Running } from '../../shared/platform/runtime/lifecycle.ts';
import type { JobDeps } from '../runs/job-context.ts';
import type { ActiveRuns } from './active-runs.ts';
import { startQueuedIntake } from './queue-intake.ts';
import { startChatIntake } from './chat-intake.ts';
import type { TakingWatch } from './taking-watch.ts';

export interface IntakesOptions {
  readonly dependencies: JobDeps;
  readonly publisher: ReplyPublisher;
  readonly bans: BanWatch;
  readonly runsByQueue: ReadonlyMap<QueueName, ActiveRuns>;
  readonly taking: TakingWatch;
  /** Concurrent requests per queue. */
  readonly concurrency: number;
  readonly connect: (purpose: 'blocking' | 'bullmq') => Promise<RedisClient>;
}

/** Takes interactive work off all queues that the worker serves. */
export async function startIntakes(options: IntakesOptions): Promise<Running[]> {
  const { dependencies, publisher, bans, runsByQueue, taking, concurrency, connect } = options;
  const intakes: Running[] = [];
  for (const [queue, runs] of runsByQueue) {
    const observe = <T>(take: () => Promise<T>): Promise<T> => taking.observe(queue, take);
    const common = { dependencies, publisher, runs, bans, observe };
    if (queue === 'chat') {
      intakes.push(startChatIntake({ ...common, blocking: await connect('blocking'), concurrency }));
      continue;
    }
    for (const bullQueue of bullQueues[queue]) {
      const bullmq = await connect('bullmq');
      const maxRuns = countQueuedRuns(bullQueue, concurrency);
      intakes.push(startQueuedIntake({ ...common, bullmq, queue: bullQueue, concurrency: maxRuns }));
    }
  }
  return intakes;
}
