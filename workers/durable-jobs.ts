import { JobTurns } from '../shared/jobs/job-turns-store.ts';
import type { QueueName } from '../shared/queue/job-kinds.ts';
import type { RedisClient } from '../shared/redis/redis-client.ts';
import { redisKeys } from '../shared/redis/redis-keys.ts';
import type { ReplyPublisher } from '../shared/reply/reply-channel.ts';
import type { Running } from '../shared/runtime/lifecycle.ts';
import { WebhookQueue } from '../shared/webhooks/webhook-queue.ts';
import type { WebhookSecretStore } from '../shared/webhooks/webhook-secret-store.ts';
import type { ActiveRuns } from './intake/active-runs.ts';
import { JobIntake } from './intake/take-jobs.ts';
import type { JobDependencies } from './jobs/job-context.ts';
import { ShardLeases } from './ledger/shard-leases.ts';
import { JobKeeper } from './upkeep/look-after-jobs.ts';
import { repeat } from './upkeep/repeat.ts';
import { JobHooks } from './webhooks/job-hooks.ts';
import { startWebhookIntake } from './webhooks/take-deliveries.ts';
import { createWebhookClient } from './webhooks/webhook-client.ts';

export interface DurableJobsOptions {
  readonly dependencies: JobDependencies;
  readonly publisher: ReplyPublisher;
  readonly runs: ActiveRuns;
  readonly queues: readonly QueueName[];
  readonly concurrency: number;
  readonly secrets: WebhookSecretStore;
  /** For webhooks: a connection without a bound on retries, as BullMQ's workers want it. */
  readonly blocking: RedisClient;
}

/** All that a worker does for durable jobs: it runs them, looks after them, and announces their ends. */
export interface DurableJobs extends Required<Running> {
  /** There may be something to take. */
  wake(queue: QueueName): void;
  /** The job's account has cancelled it. */
  cancel(jobId: string): void;
}

export function startDurableJobs(options: DurableJobsOptions): DurableJobs {
  const { dependencies, publisher, runs, queues, concurrency, secrets, blocking } = options;
  const { redis, workerId, log } = dependencies;
  const turns = new JobTurns(redis);
  const intake = new JobIntake({ dependencies, turns, publisher, runs, queues, concurrency });
  const webhookQueue = new WebhookQueue(redis);
  const hooks = new JobHooks(redis, webhookQueue);
  const webhooks = startWebhookIntake({
    redis,
    blocking,
    secrets,
    reporter: hooks,
    loadPayload: (delivery) => hooks.loadPayload(delivery),
    client: createWebhookClient(),
    log,
  });
  const keeper = new JobKeeper({
    redis,
    turns,
    leases: new ShardLeases(redis, workerId, redisKeys.jobsLease),
    queueHook: (hook) => hooks.queue(hook),
    log,
  });
  const keeping = repeat({ name: 'look after jobs', intervalMs: 1_000, run: () => keeper.look() }, log);
  return {
    wake: (queue) => intake.wake(queue),
    cancel: (jobId) => intake.cancel(jobId),
    async stop() {
      await Promise.all([intake.stop(), webhooks.stop()]);
      await keeping.stop();
      await webhookQueue.close();
    },
    handBack: () => intake.handBack(),
  };
}
