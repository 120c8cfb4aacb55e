import { randomUUID } from 'node:crypto';
import { BanWatch } from '../shared/account-changes/ban-watch.ts';
import { AppError } from '../shared/contract/errors.ts';
import type { QueueName } from '../shared/queue/job-kinds.ts';
import { listenToInvalidations } from '../shared/redis/invalidation-channel.ts';
import { tooMuchKept } from '../shared/reply/kept-frames-store.ts';
import { ReplyPublisher } from '../shared/reply/reply-channel.ts';
import type { Config } from '../shared/config/config.ts';
import type { Running } from '../shared/runtime/lifecycle.ts';
import type { Logger } from '../shared/runtime/logger.ts';
import { runInBackground } from '../shared/runtime/run-in-background.ts';
import { WebhookSecretStore } from '../shared/webhooks/webhook-secret-store.ts';
import { startDurableJobs, type DurableJobs } from './durable-jobs.ts';
import { ActiveRuns } from './intake/active-runs.ts';
import { listenToControl } from './intake/listen-to-control.ts';
import { startIntakes } from './intake/start-intakes.ts';
import { createJobDeps } from './job-deps.ts';
import { startMailIntake } from './mail/take-mails.ts';
import { AccountBanned } from './jobs/job-context.ts';
import { startHeartbeat } from './maintenance/heartbeat.ts';
import { startMaintenance } from './maintenance/start-maintenance.ts';
import { openWorkerStores } from './worker-stores.ts';

export interface WorkerOptions {
  readonly queues: readonly QueueName[];
  /** Requests of each queue that run at once. */
  readonly concurrency: number;
  /** Bytes that whole responses may hold in total until they have been sent. */
  readonly responseMemoryBytes?: number;
  /** Written for `node dist/workers/health.js`. Omit for none. */
  readonly healthFile?: string;
}

/** Starts everything a worker process does: it takes work, reads the ledger, and sends heartbeats. */
export async function startWorker(
  config: Config,
  env: NodeJS.ProcessEnv,
  log: Logger,
  options: WorkerOptions,
): Promise<Running> {
  const workerId = randomUUID();
  const { queues, concurrency, responseMemoryBytes, healthFile } = options;
  const stores = await openWorkerStores(config, env, log);
  const { redis, payloadRedis, subscriber, mongo, catalog, hotAccounts, keptFrames, connect } = stores;
  const dependencies = createJobDeps(stores, workerId, responseMemoryBytes, log);

  const runsByQueue = new Map(queues.map((queue) => [queue, new ActiveRuns()]));
  const jobRuns = new ActiveRuns();
  const allRuns = [...runsByQueue.values(), jobRuns];
  const bans = new BanWatch({
    hotAccounts,
    listAccounts: () => allRuns.flatMap((runs) => Array.from(runs.requests(), ({ accountId }) => accountId)),
    endAccount: (accountId) => {
      for (const runs of allRuns) runs.cancelAccount(accountId, new AccountBanned());
    },
    log,
  });
  const publisher = new ReplyPublisher({
    workerId,
    redis,
    payloads: payloadRedis,
    keptFrames,
    log,
    onDeaf: (channel) => {
      for (const runs of runsByQueue.values()) runs.cancelChannel(channel);
    },
    onKept: (request, size) => dependencies.mover.frames(request, size),
    onKeptTooMuch: ({ requestId }) => {
      const error = new AppError('too_many_jobs', { message: tooMuchKept });
      for (const runs of allRuns) runs.fail(requestId, error);
    },
  });
  let jobs: DurableJobs | null = null;
  listenToControl({
    subscriber,
    workerId,
    queues,
    onControl: (control) => {
      if (control.action === 'received') publisher.acknowledge(control.channel, control.mark);
      else if (control.action === 'cancel-job') jobs?.cancel(control.jobId);
      else for (const runs of runsByQueue.values()) runs.control(control);
    },
    onJobsAdded: (queue) => jobs?.wake(queue),
  });
  listenToInvalidations(subscriber, (change) => {
    runInBackground(bans.handle(change), 'ban look-up', log);
    if (change !== null && change.kind !== 'models') return;
    catalog
      .refreshDisabled()
      .catch((error: unknown) => log.warn({ err: error }, 'the disabled models could not be read'));
  });

  await subscriber.start();

  // The worker must be registered before it takes anything, because work of a worker presumed dead is
  // dispatched again.
  const heartbeat = await startHeartbeat({
    redis,
    runsByQueue,
    embeddings: dependencies.embeddings,
    workerId,
    ...(healthFile === undefined ? {} : { healthFile }),
    log,
    concurrency,
  });
  const intakes = await startIntakes({
    dependencies,
    publisher,
    bans,
    runsByQueue,
    concurrency,
    connect,
  });
  jobs = startDurableJobs({
    dependencies,
    publisher,
    runs: jobRuns,
    queues,
    concurrency,
    secrets: new WebhookSecretStore(mongo.db, config),
    bullmq: await connect('bullmq'),
  });
  intakes.push(jobs);
  if (config.smtpUrl === null) {
    log.warn('SMTP_URL is not set; mails wait until a worker has it');
  } else {
    const mails = startMailIntake({
      smtpUrl: config.smtpUrl,
      masterKey: config.masterKey,
      from: config.mailFrom,
      supportEmail: config.supportEmail,
      isSignUpOpen: config.signup.isOpen,
      isKnown: (email) => stores.web.users.isKnown(email),
      bullmq: await connect('bullmq'),
      log,
    });
    intakes.push(mails);
  }
  const maintenance = startMaintenance({
    stores,
    workerId,
    bans,
    listRequests: () => [...runsByQueue.values()].flatMap((runs) => [...runs.requests()]),
    probeReaders: () =>
      publisher.probe(new Set([...runsByQueue.values()].flatMap((runs) => [...runs.channels()]))),
    log,
  });
  log.info({ workerId, queues, concurrency }, 'worker ready');

  return {
    async stop() {
      await Promise.all(intakes.map((intake) => intake.stop()));
      await heartbeat.stop();
      await maintenance.stop();
      await dependencies.stop();
      await stores.close();
    },
    async handBack() {
      // Settling cancelled jobs takes a moment, which the other steps do not wait for.
      const handedBack = jobs.handBack();
      await dependencies.handBackCalls();
      // From then on its chats are dispatched again.
      await heartbeat.stop();
      await handedBack;
    },
  };
}
