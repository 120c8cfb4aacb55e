import { UnrecoverableError, Worker, type Job as BullJob } from 'bullmq';
import type { BanWatch } from '../../shared/accounts/ban-watch.ts';
import type {
  AdmittedRequest,
  BullQueueName,
  EmbeddingJob,
  ImageJob,
  QueueItem,
} from '../../shared/queue/job-kinds.ts';
import { releaseReservation } from '../../shared/billing/settle-script.ts';
import { CancelledStore } from '../../shared/queue/cancelled-store.ts';
import { bullPrefix } from '../../shared/redis/redis-keys.ts';
import type { RedisClient } from '../../shared/redis/redis-client.ts';
import { ReplyWriter, type ReplyPublisher } from '../../shared/reply/reply-channel.ts';
import type { Running } from '../../shared/runtime/lifecycle.ts';
import type { JobDependencies, RequestRun } from '../jobs/job-context.ts';
import { runEmbedding } from '../jobs/run-embedding.ts';
import { runImage } from '../jobs/run-image.ts';
import type { ActiveRuns } from './active-runs.ts';
import { readStoredJob } from './read-stored-job.ts';

/** A job whose worker went silent for so long is given to another. */
const lockMs = 10_000;
const stalledCheckMs = 5_000;
/** How many workers may die under one job before it is taken for the cause. */
const maxStalled = 2;

type QueuedJob = EmbeddingJob | ImageJob;

export interface QueuedIntakeOptions {
  readonly dependencies: JobDependencies;
  readonly queue: BullQueueName;
  /** A connection without a bound on retries, as BullMQ's workers want it. */
  readonly blocking: RedisClient;
  readonly publisher: ReplyPublisher;
  readonly runs: ActiveRuns;
  readonly bans: Pick<BanWatch, 'checkStarted'>;
  readonly concurrency: number;
}

/** Takes jobs off one of BullMQ's queues and runs them. A job that ran has answered and settled by itself. */
export function startQueuedIntake(options: QueuedIntakeOptions): Running {
  const { dependencies, queue } = options;
  const worker = new Worker<QueueItem<QueuedJob>>(
    queue,
    async (job) => {
      await runItem(options, job);
    },
    {
      connection: options.blocking,
      prefix: bullPrefix,
      concurrency: options.concurrency,
      lockDuration: lockMs,
      stalledInterval: stalledCheckMs,
      maxStalledCount: maxStalled,
    },
  );
  worker.on('error', (error) => dependencies.log.debug({ queue, err: error }, 'waiting for Redis'));
  worker.on('failed', (job, error) => {
    dependencies.log.error({ queue, jobId: job?.id, err: error }, 'job failed');
    if (job !== undefined) {
      abandon(options, job).catch((failure: unknown) => {
        dependencies.log.error({ queue, jobId: job.id, err: failure }, 'a failed job could not be released');
      });
    }
  });
  return {
    async stop() {
      // Without Redis nothing can be handed back in order; the locks run out by themselves.
      await worker.close(options.blocking.status !== 'ready');
    },
  };
}

const requestsOf = (job: QueuedJob): readonly AdmittedRequest[] =>
  job.kind === 'image' ? [job.request] : job.parts.map((part) => part.request);

async function runItem(options: QueuedIntakeOptions, bullJob: BullJob<QueueItem<QueuedJob>>): Promise<void> {
  const { dependencies } = options;
  const job = await readItem(dependencies, bullJob.data);
  const opened = openRuns(options, job, bullJob.attemptsStarted);
  // Both are asked before a vendor's slot is, of the same server: the answers are there before anything is paid for.
  options.publisher.flush();
  void cancelAbsent(options, job);
  try {
    if (job.kind === 'image') await runImage(dependencies, job, opened[0]!);
    else await runEmbedding(dependencies, job, opened);
    // A worker that dies once the job is done has nobody to run it again, and its callers would wait for ever.
    await options.publisher.sent();
  } finally {
    for (const run of opened) run.end();
  }
  if ('stored' in bullJob.data) await dependencies.payloads.drop(bullJob.data.stored);
}

/** A run for each request; one whose deadline passed while it was queued is over already. */
function openRuns(
  { dependencies, publisher, runs, bans }: QueuedIntakeOptions,
  job: QueuedJob,
  attempt: number,
): (RequestRun & { end(): void })[] {
  const nowMs = Date.now();
  return requestsOf(job).map((request) => {
    const { requestId, deadlineAtMs } = request;
    const reply = new ReplyWriter(publisher, job.replyChannel, request, attempt);
    const run = runs.start(request, job.replyChannel, attempt);
    if (nowMs > deadlineAtMs) runs.control({ action: 'cancel', requestId });
    else reply.accepted(dependencies.workerId);
    bans.checkStarted(request);
    return { reply, ...run, log: dependencies.log.child({ requestId }) };
  });
}

/** Ends the runs of those who left while the job was queued. */
async function cancelAbsent({ dependencies, runs }: QueuedIntakeOptions, job: QueuedJob): Promise<void> {
  const requestIds = requestsOf(job).map(({ requestId }) => requestId);
  try {
    const cancelled = await new CancelledStore(dependencies.redis).check(requestIds);
    for (const [i, requestId] of requestIds.entries()) {
      if (cancelled[i] === true) runs.control({ action: 'cancel', requestId });
    }
  } catch (error) {
    // Their process hears that they were accepted, and has them cancelled.
    dependencies.log.debug({ err: error }, 'it is not known who left while the job was queued');
  }
}

async function readItem({ payloads }: JobDependencies, item: QueueItem<QueuedJob>): Promise<QueuedJob> {
  if (!('stored' in item)) return item;
  const job = await readStoredJob<QueuedJob>(payloads, item.stored, item.accountId ?? '');
  if (job === null) throw new UnrecoverableError('the body of this job is gone: it waited past its deadline');
  return job;
}

/** Ends what a job left open that killed its workers or could not be read: nobody pays, and whoever waits is told. */
async function abandon(options: QueuedIntakeOptions, bullJob: BullJob<QueueItem<QueuedJob>>): Promise<void> {
  const { dependencies, publisher } = options;
  const job = await readItem(dependencies, bullJob.data);
  for (const request of requestsOf(job)) {
    await releaseReservation(dependencies.redis, request);
    const reply = new ReplyWriter(publisher, job.replyChannel, request, bullJob.attemptsStarted + 1);
    reply.error({ code: 'upstream_error', message: 'The work failed repeatedly and was given up.' });
  }
}
