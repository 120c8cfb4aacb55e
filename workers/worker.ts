import { randomUUID } from 'node:crypto';
import { startProcessHeartbeat } from '../shared/operator/process-heartbeat.ts';
import { reportSetup } from '../shared/doctor/report-setup.ts';
import { BanWatch } from '../shared/money/ban-watch.ts';
import { AppError } from '../shared/contract/errors.ts';
import { batchQueueOf } from '../shared/work/jobs/job-line.ts';
import type { QueueName } from '../shared/work/queue/job-kinds.ts';
import { tooMuchStoredMessage } from '../shared/work/replies/stored-frames-store.ts';
import { ReplyPublisher } from './replies/reply-publisher.ts';
import type { Config } from '../shared/platform/config/config.ts';
import {
  startOperatorServer,
  type OperatorServer,
  type OperatorServerOptions,
} from '../shared/operator/operator-server.ts';
import { ProcessMetrics } from '../shared/platform/metrics/process-metrics.ts';
import { productBuild, productVersion } from '../shared/platform/runtime/product-version.ts';
import type { Running } from '../shared/platform/runtime/lifecycle.ts';
import { runInBackground } from '../shared/platform/runtime/run-in-background.ts';
import type { Logger } from '../shared/platform/runtime/logger.ts';
import { openTracing } from '../shared/platform/tracing/open-tracing.ts';
import { listenToChanges } from '../shared/stores/listen-to-changes.ts';
import type { WorkerState } from '../shared/operator/worker-state.ts';
import { openStores, type Stores } from '../shared/stores/open-stores.ts';
import { Faults } from './reporting/faults.ts';
import { WebhookSecretStore } from '../shared/work/webhook-secret-store.ts';
import { startDurableJobs, type RunningJobIntake } from './start-durable-jobs.ts';
import { startIntakes } from './intake/start-intakes.ts';
import { TakingWatch } from './intake/taking-watch.ts';
import { WorkerRuns } from './intake/worker-runs.ts';
import { createJobDeps, type JobDepsOptions, type RunningDeps } from './job-deps.ts';
import { startMailIntake } from './deliveries/mail/take-mails.ts';
import { AccountBanned } from './runs/job-context.ts';
import { countHeldWork } from './maintenance/count-held-work.ts';
import { cancelWaiting, type DrainRequest } from './maintenance/cancel-waiting.ts';
import { startHeartbeat } from './maintenance/heartbeat.ts';
import { startMaintenance } from './maintenance/start-maintenance.ts';
import { testModel } from './runs/test-model.ts';
import { redisChannels } from '../shared/platform/redis/redis-keys.ts';
import type { Subscriber } from '../shared/platform/redis/subscriber-client.ts';
import type { ControlMessage } from '../shared/work/replies/worker-control.ts';

export interface WorkerOptions extends JobDepsOptions {
  readonly queues: readonly QueueName[];
  /** Concurrent requests per queue. */
  readonly concurrency: number;
  /** The file written for `node dist/workers/health.js`. If omitted, none is written. */
  readonly healthFile?: string;
  /** Whether to log at startup what is wrong with the set-up of the stores. */
  readonly reportsSetup?: boolean;
}

export interface RunningWorker extends Required<Running> {
  readonly metrics: ProcessMetrics;
  /** For the process that started this one. */
  state(): WorkerState;
}

/** Starts everything a worker process does: requests, durable jobs, and periodic maintenance. */
export async function startWorker(
  config: Config,
  env: NodeJS.ProcessEnv,
  log: Logger,
  options: WorkerOptions,
): Promise<RunningWorker> {
  const workerId = randomUUID();
  const { queues, concurrency, healthFile, reportsSetup = false } = options;
  const metrics = new ProcessMetrics({ role: 'worker', version: productVersion, build: productBuild });
  const tracing = await openTracing(config.tracing, 'worker', log);
  const stores = await openStores(config, env, log, metrics);
  const { redis, subscriber, connect } = stores;
  let isStopping = false;
  const taking = new TakingWatch();
  const isReady = (): boolean => !isStopping && queues.every((queue) => taking.isTaking(queue));
  const operatorServer = await listenToOperator(config, { metrics, isReady, log }).catch(
    async (error: unknown) => {
      await stores.close();
      throw error;
    },
  );
  const faults = new Faults(log);
  const dependencies = createJobDeps(stores, workerId, options, faults, metrics, tracing, log);
  const runs = new WorkerRuns(queues);
  const runsByQueue = runs.byQueue;
  let jobs: RunningJobIntake | null = null;
  const bans = new BanWatch({
    hotAccounts: stores.hotAccounts,
    listAccounts: () => [...runs.accounts(), ...(jobs?.batchAccounts() ?? [])],
    endAccount: (accountId) => {
      runs.cancelAccount(accountId, new AccountBanned());
      jobs?.refuseBatches(accountId);
    },
    log,
  });
  const publisher = createPublisher(stores, dependencies, runs);
  const drain = (request: DrainRequest): void => {
    const cancelJobs = (queue: QueueName): number => jobs?.cancelWaiting(queue) ?? 0;
    const cancelling = cancelWaiting({ dependencies, cancelJobs }, request);
    runInBackground(cancelling, 'cancelling what waits for call slots', log);
  };
  listenToControl({
    subscriber,
    workerId,
    queues,
    onControl: (control) => {
      if (control.action === 'received') publisher.acknowledge(control.channel, control.mark);
      else if (control.action === 'cancel-job') jobs?.cancel(control.jobId);
      else if (control.action === 'check-batches') jobs?.checkBatches();
      else if (control.action === 'drain') drain(control);
      else if (control.action === 'test-model')
        runInBackground(testModel(dependencies, control), 'testing a model', log);
      else runs.control(control);
    },
    onJobsAdded: (queue) => jobs?.wake(queue),
    onBatchesAdded: (queue) => jobs?.wakeBatches(queue),
  });
  listenToChanges(stores, { bans, log });
  await subscriber.start();

  // The worker must be registered before it takes any work, because the work of a worker presumed dead is
  // dispatched again.
  const { catalog, embeddings, tally, routing } = dependencies;
  const heldSources = { catalog, runs, embeddings, tally, limiter: routing.limiter };
  const heartbeat = await startHeartbeat({
    redis,
    runsByQueue,
    taking,
    embeddings: dependencies.embeddings,
    faults,
    endedWork: dependencies.endedWork,
    countHeld: () => countHeldWork(heldSources, queues),
    workerId,
    ...(healthFile === undefined ? {} : { healthFile }),
    log,
    concurrency,
  });
  const presence = startProcessHeartbeat(redis, 'worker', log);
  const intakes = await startIntakes({
    dependencies,
    publisher,
    bans,
    runsByQueue,
    taking,
    concurrency,
    connect,
  });
  jobs = startDurableJobs({
    dependencies,
    publisher,
    runs: runs.ofJobs,
    queues,
    concurrency,
    secrets: new WebhookSecretStore(stores.mongo.db, config),
    bullmq: await connect('bullmq'),
    bucketUrl: config.s3.publicUrl,
  });
  intakes.push(jobs);
  const mails = await startMails(config, stores, faults, log);
  if (mails !== null) intakes.push(mails);
  const maintenance = startMaintenance({
    stores,
    workerId,
    bans,
    listRequests: () => runs.interactiveRequests(),
    probeReaders: () => publisher.probe(runs.channels()),
    faults,
    log,
  });
  const metricsUrl = operatorServer === null ? {} : { metricsUrl: `${operatorServer.url}/metrics` };
  if (reportsSetup) runInBackground(reportSetup({ ...stores, config, env }, log), 'checking the set-up', log);
  log.info({ workerId, queues, concurrency, ...metricsUrl }, 'worker ready');

  return {
    metrics,
    state: () => ({ isReady: isReady(), running: runs.size + jobs.batchAccounts().length }),
    async stop() {
      isStopping = true;
      await Promise.all(intakes.map((intake) => intake.stop()));
      await Promise.all([heartbeat.stop(), presence.stop()]);
      await maintenance.stop();
      await dependencies.stop();
      await operatorServer?.stop();
      await Promise.all([stores.close(), tracing?.stop()]);
    },
    async handBack() {
      // Settling cancelled jobs takes a moment; the other steps do not wait for it.
      const handedBack = jobs.handBack();
      await dependencies.handBackCalls();
      // Once the heartbeat stops, the chats of this worker are dispatched again.
      await heartbeat.stop();
      await handedBack;
    },
  };
}

/**
 * Called before the worker takes any work, which would be lost if it had to exit because the port is in use.
 * @returns null if there is no port
 */
async function listenToOperator(
  config: Config,
  parts: Pick<OperatorServerOptions, 'metrics' | 'isReady' | 'log'>,
): Promise<OperatorServer | null> {
  if (config.metricsPort === null) return null;
  return await startOperatorServer({ config, port: config.metricsPort, ...parts });
}

interface ControlOptions {
  readonly subscriber: Subscriber;
  readonly workerId: string;
  readonly queues: readonly QueueName[];
  readonly onControl: (control: ControlMessage) => void;
  /** Called when an account gets its first waiting durable job for a model in this queue. */
  readonly onJobsAdded: (queue: QueueName) => void;
  /** The same for batches. */
  readonly onBatchesAdded: (queue: QueueName) => void;
}

/** Subscribes to control messages from api processes for this worker, and to new durable jobs in its queues. */
function listenToControl(options: ControlOptions): void {
  const { subscriber, workerId, queues, onControl, onJobsAdded, onBatchesAdded } = options;
  subscriber.listen(redisChannels.control(workerId), {
    onMessage: (message) => onControl(JSON.parse(message.toString('utf8')) as ControlMessage),
  });
  for (const queue of queues) {
    subscriber.listen(redisChannels.jobsAdded(queue), { onMessage: () => onJobsAdded(queue) });
    subscriber.listen(redisChannels.jobsAdded(batchQueueOf(queue)), {
      onMessage: () => onBatchesAdded(queue),
    });
  }
}

function createPublisher(
  { redis, payloadRedis, storedFrames }: Stores,
  { workerId, mover, log }: RunningDeps,
  runs: WorkerRuns,
): ReplyPublisher {
  return new ReplyPublisher({
    workerId,
    redis,
    payloads: payloadRedis,
    storedFrames,
    log,
    onNoListeners: (channel) => runs.cancelChannel(channel),
    onStored: (request, size) => mover.queueFrames(request, size),
    onStorageLimitReached: ({ requestId }) =>
      runs.fail(requestId, new AppError('too_many_jobs', { message: tooMuchStoredMessage })),
  });
}

/** Returns null if no mail server is configured. */
async function startMails(
  config: Config,
  { web, connect }: Stores,
  faults: Faults,
  log: Logger,
): Promise<Running | null> {
  const { smtpUrl, masterKey, mailFrom, supportEmail, signup } = config;
  if (smtpUrl === null) {
    log.warn('SMTP_URL is not set; mails stay queued until a worker with SMTP_URL starts');
    return null;
  }
  return startMailIntake({
    smtpUrl,
    masterKey,
    from: mailFrom,
    supportEmail,
    isSignUpOpen: signup.isOpen,
    isKnown: (email) => web.users.isKnown(email),
    bullmq: await connect('bullmq'),
    faults,
    log,
  });
}
