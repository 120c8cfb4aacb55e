import { JobTurns } from '../shared/work/jobs/job-turns-store.ts';
import { queueOfModel, type QueueName } from '../shared/work/queue/job-kinds.ts';
import type { RedisClient } from '../shared/platform/redis/redis-client.ts';
import { redisKeys } from '../shared/platform/redis/redis-keys.ts';
import type { WebhookDelivery } from '../shared/work/webhook-delivery.ts';
import { DocumentReader } from '../shared/preparing/documents/document-reader.ts';
import { CountedTexts } from '../shared/preparing/tokens/counted-texts.ts';
import { BatchIntake } from './batches/batch-intake.ts';
import { BatchKeeper } from './batches/batch-keeper.ts';
import { BatchHooks, isOfBatch } from './deliveries/webhooks/batch-hooks.ts';
import type { ReplyPublisher } from './replies/reply-publisher.ts';
import type { Running } from '../shared/platform/runtime/lifecycle.ts';
import { WebhookQueue } from './deliveries/webhooks/webhook-queue.ts';
import type { WebhookSecretStore } from '../shared/work/webhook-secret-store.ts';
import type { ActiveRuns } from './intake/active-runs.ts';
import { JobIntake } from './intake/job-intake.ts';
import type { JobDeps } from './runs/job-context.ts';
import { ShardLeases } from './ledger/shard-leases.ts';
import { JobKeeper } from './maintenance/job-keeper.ts';
import { runPeriodically } from './maintenance/run-periodically.ts';
import { JobHooks } from './deliveries/webhooks/job-hooks.ts';
import { startWebhookIntake } from './deliveries/webhooks/take-deliveries.ts';
import { createWebhookClient } from './deliveries/webhooks/webhook-client.ts';

export interface DurableJobsOptions {
  readonly dependencies: JobDeps;
  readonly publisher: ReplyPublisher;
  readonly runs: ActiveRuns;
  readonly queues: readonly QueueName[];
  readonly concurrency: number;
  readonly secrets: WebhookSecretStore;
  /** For webhooks: a connection without a retry limit, as BullMQ's workers require. */
  readonly bullmq: RedisClient;
  /** The public URL of the bucket; null if the gateway serves its files. */
  readonly bucketUrl: string | null;
}

/** Everything a worker does for durable jobs and batches: running them, maintaining them and sending their webhooks. */
export interface RunningJobIntake extends Required<Running> {
  /** Checks for jobs to run. */
  wake(queue: QueueName): void;
  /** Checks for batches to run. */
  wakeBatches(queue: QueueName): void;
  /** Looks at once whether lines of batches must not be run any more. */
  checkBatches(): void;
  /** The accounts of the lines of batches that this worker has, possibly with duplicates. */
  batchAccounts(): string[];
  /** Runs no further lines of batches of a banned account. */
  refuseBatches(accountId: string): void;
  /** Cancels the jobs of a queue that wait for a call slot. @returns how many */
  cancelWaiting(queue: QueueName): number;
  /** Cancels the job on behalf of its account. */
  cancel(jobId: string): void;
}

export function startDurableJobs(options: DurableJobsOptions): RunningJobIntake {
  const { dependencies, publisher, runs, queues, concurrency, secrets, bullmq, bucketUrl } = options;
  const { redis, workerId, catalog, faults, log } = dependencies;
  const turns = new JobTurns(redis);
  const intake = new JobIntake({ dependencies, turns, publisher, runs, queues, concurrency });
  const webhookQueue = new WebhookQueue(redis);
  const jobHooks = new JobHooks(redis, webhookQueue);
  const batchHooks = new BatchHooks(redis, webhookQueue);
  const hooksOf = (delivery: WebhookDelivery) => (isOfBatch(delivery) ? batchHooks : jobHooks);
  const documents = new DocumentReader(log);
  const preparation = { documents, reasoning: dependencies.reasoning, countedTexts: new CountedTexts() };
  const batches = new BatchIntake({
    dependencies: { ...dependencies, preparation, bucketUrl },
    turns,
    queues,
  });
  const webhooks = startWebhookIntake({
    redis,
    bullmq,
    faults,
    secrets,
    reporter: { report: (delivery, state) => hooksOf(delivery).report(delivery, state) },
    loadPayload: (delivery) => hooksOf(delivery).loadPayload(delivery),
    client: createWebhookClient(),
    log,
  });
  const keeper = new JobKeeper({
    redis,
    turns,
    leases: new ShardLeases(redis, workerId, redisKeys.jobsLease),
    batches: new BatchKeeper({ redis, turns, queueHook: (hook) => batchHooks.queue(hook), log }),
    queueHook: (hook) => jobHooks.queue(hook),
    knowsModel: ({ queue, model: name }) => {
      const model = catalog.find(name);
      return model !== undefined && queueOfModel(model.type) === queue;
    },
    faults,
    log,
  });
  const keeperTask = runPeriodically(
    { name: 'maintaining jobs', intervalMs: 1_000, run: () => keeper.maintainShards() },
    faults,
  );
  return {
    wake: (queue) => intake.wake(queue),
    wakeBatches: (queue) => batches.wake(queue),
    checkBatches: () => batches.check(),
    batchAccounts: () => batches.accounts(),
    refuseBatches: (accountId) => batches.refuseAccount(accountId),
    cancelWaiting: (queue) => intake.cancelWaiting(queue),
    cancel: (jobId) => intake.cancel(jobId),
    async stop() {
      await Promise.all([intake.stop(), batches.stop(), webhooks.stop()]);
      await documents.close();
      await keeperTask.stop();
      await webhookQueue.close();
    },
    async handBack() {
      await Promise.all([intake.handBack(), batches.handBack()]);
    },
  };
}
