import type { Job as BullJob } from 'bullmq';
import type { BanWatch } from '../../shared/money/ban-watch.ts';
import { AppError } from '../../shared/contract/errors.ts';
import type { AdmittedRequest } from '../../shared/money/admitted-request.ts';
import {
  listRequests,
  type BullQueueName,
  type QueueItem,
  type QueuedJob,
  type StoredJob,
} from '../../shared/work/queue/job-kinds.ts';
import { releaseReservation } from '../../shared/work/settlement/settle-script.ts';
import { CancelledStore } from '../../shared/work/queue/cancelled-store.ts';
import type { RedisClient } from '../../shared/platform/redis/redis-client.ts';
import { ReplyWriter } from '../replies/reply-writer.ts';
import type { ReplyPublisher } from '../replies/reply-publisher.ts';
import { createLazyChild } from '../reporting/lazy-child-logger.ts';
import type { Running } from '../../shared/platform/runtime/lifecycle.ts';
import type { JobDeps, RequestRun } from '../runs/job-context.ts';
import { runEmbedding } from '../runs/run-embedding.ts';
import { RunFacts } from '../runs/run-facts.ts';
import { startRunSpan } from '../runs/run-span.ts';
import { runImage } from '../runs/run-image.ts';
import type { ActiveRuns } from './active-runs.ts';
import { closeBullWorker } from './close-bull-worker.ts';
import { createBullWorker } from './create-bull-worker.ts';
import { readStoredJob } from './read-stored-job.ts';
import { liveness } from '../../shared/platform/redis/liveness.ts';

/** How many workers may die while running one job before the job is presumed to be the cause. */
const maxStalled = 2;

export interface QueuedIntakeOptions {
  readonly dependencies: JobDeps;
  readonly queue: BullQueueName;
  /** Observes the attempts to take jobs. */
  readonly observe: <R>(take: () => Promise<R>) => Promise<R>;
  readonly bullmq: RedisClient;
  readonly publisher: ReplyPublisher;
  readonly runs: ActiveRuns;
  readonly bans: Pick<BanWatch, 'checkStarted'>;
  readonly concurrency: number;
}

/** Takes jobs off a BullMQ queue and runs them. Running a job includes its replies and settlement. */
export function startQueuedIntake(options: QueuedIntakeOptions): Running {
  const { dependencies, queue } = options;
  const worker = createBullWorker<QueuedItem>(
    queue,
    async (job) => {
      await runItem(options, job);
    },
    {
      faults: dependencies.faults,
      log: dependencies.log,
      redis: options.bullmq,
      concurrency: options.concurrency,
      lockMs: liveness.queueItem.deadMs,
      maxStalled,
      observe: options.observe,
    },
  );
  worker.on('failed', (job, error) => {
    dependencies.log.error({ queue, jobId: job?.id, err: error }, 'job failed');
    if (job !== undefined) {
      failRequests(options, job).catch((failure: unknown) => {
        dependencies.log.error({ queue, jobId: job.id, err: failure }, 'releasing a failed job failed');
      });
    }
  });
  return {
    async stop() {
      await closeBullWorker(worker, options.bullmq);
      // If Redis is down, BullMQ does not wait for running jobs.
      await options.runs.drained();
    },
  };
}

type QueuedItem = QueueItem<QueuedJob>;

const requestsOf = (item: QueuedItem): readonly AdmittedRequest[] =>
  'stored' in item ? item.requests : listRequests(item);

async function runItem(options: QueuedIntakeOptions, bullJob: BullJob<QueuedItem>): Promise<void> {
  const item = bullJob.data;
  const openedRuns = openRuns(options, item, bullJob.attemptsStarted);
  // Send the replies and the check for cancelled requests before a vendor's slot is requested. A single Redis server
  // handles commands in order, so it answers both before anything costs money.
  options.publisher.flush();
  const cancelled = cancelDisconnected(options, item);
  if (options.dependencies.redis.isCluster) await Promise.all([options.publisher.sent(), cancelled]);
  try {
    if ('stored' in item) await runStored(options, item, openedRuns, cancelled);
    else await runJob(options, item, openedRuns);
    // If the job were marked as done and the worker then died with unsent replies, nothing would run the job again and
    // its callers would wait forever.
    await options.publisher.sent();
  } finally {
    for (const run of openedRuns) {
      run.facts.span?.end();
      run.end();
    }
  }
}

async function runJob(
  { dependencies }: QueuedIntakeOptions,
  job: QueuedJob,
  runs: readonly RequestRun[],
): Promise<void> {
  if (job.kind === 'image') await runImage(dependencies, job, runs[0]!);
  else await runEmbedding(dependencies, job, runs);
}

async function runStored(
  options: QueuedIntakeOptions,
  item: StoredJob,
  runs: readonly RequestRun[],
  cancelled: Promise<void>,
): Promise<void> {
  const { dependencies } = options;
  await cancelled;
  const readJob = await readStoredJob<QueuedJob>(dependencies, item, runs);
  try {
    if (readJob !== null) await runJob(options, readJob.job, runs);
  } finally {
    readJob?.memory.release();
  }
  dependencies.payloads.drop(item.stored);
}

/** Opens a run for each request. A request whose deadline passed while it was queued fails immediately. */
function openRuns(
  { dependencies, publisher, runs, bans, queue: bullQueue }: QueuedIntakeOptions,
  item: QueuedItem,
  attempt: number,
): (RequestRun & { readonly facts: RunFacts; end(): void })[] {
  const nowMs = Date.now();
  const queue = bullQueue.startsWith('image') ? 'image' : 'embedding';
  return requestsOf(item).map((request) => {
    const { requestId, deadlineAtMs } = request;
    const reply = new ReplyWriter(publisher, item.replyChannel, request, attempt);
    const run = runs.start(request, item.replyChannel, attempt);
    // The caller is still waiting, so the request fails as overdue, not as cancelled.
    if (nowMs > deadlineAtMs) runs.fail(requestId, new AppError('deadline_exceeded'));
    else reply.accepted(dependencies.workerId);
    bans.checkStarted(request);
    const log = createLazyChild(dependencies.log, { requestId });
    const span = startRunSpan(dependencies.tracing, queue, request);
    return { reply, ...run, log, facts: new RunFacts(request, span) };
  });
}

/** Cancels the runs of callers that disconnected while the job was queued. */
async function cancelDisconnected(
  { dependencies, runs }: QueuedIntakeOptions,
  item: QueuedItem,
): Promise<void> {
  const requestIds = requestsOf(item).map(({ requestId }) => requestId);
  try {
    const cancelled = await new CancelledStore(dependencies.redis).check(requestIds);
    for (const [i, requestId] of requestIds.entries()) {
      if (cancelled[i] === true) runs.control({ action: 'cancel', requestId });
    }
  } catch (error) {
    // The api process is notified that the requests were accepted, and cancels them.
    dependencies.log.debug(
      { err: error },
      'checking for callers that disconnected while the job was queued failed',
    );
  }
}

/** Fails the requests of a job that killed its workers. The callers are not charged and get an error. */
async function failRequests(options: QueuedIntakeOptions, bullJob: BullJob<QueuedItem>): Promise<void> {
  const { dependencies, publisher } = options;
  const item = bullJob.data;
  for (const request of requestsOf(item)) {
    await releaseReservation(dependencies.redis, request);
    const reply = new ReplyWriter(publisher, item.replyChannel, request, bullJob.attemptsStarted + 1);
    const message = 'The request failed because its worker crashed on every attempt.';
    reply.error({ code: 'upstream_error', message });
  }
}
