import { randomUUID } from 'node:crypto';
import { ReservationStore, type HeartbeatRequest } from '../../../shared/money/reservation-store.ts';
import type { AppError } from '../../../shared/contract/errors.ts';
import type { FairBudget } from '../../../shared/fairness/fair-budget.ts';
import type { EmbeddingJob, ImageJob } from '../../../shared/work/queue/job-kinds.ts';
import { JobQueue } from './job-queue.ts';
import type { Lane } from '../../../shared/work/queue/fair-share.ts';
import { ReadyQueue } from '../../../shared/work/queue/ready-queue.ts';
import { WorkerRegistryStore } from '../../../shared/work/queue/worker-registry-store.ts';
import { ResponseStore } from '../../../shared/work/replies/response-store.ts';
import type { Logger } from '../../../shared/platform/runtime/logger.ts';
import type { Stores } from '../../../shared/stores/open-stores.ts';
import type { UsageMetrics } from '../../../shared/ledger/usage-metrics.ts';
import type { RequestStatsRecorder } from '../../../shared/ledger/request-stats-recorder.ts';
import { BulkShares } from './bulk-shares.ts';
import { ChatDispatcher } from './chat-dispatcher.ts';
import { JobDispatcher } from './job-dispatcher.ts';
import { DurableJobs } from '../../jobs/durable-jobs.ts';
import { EmbeddingBatcher } from './embedding-batcher.ts';
import { FactsInbox } from '../replies/facts-inbox.ts';
import { failAllPendingReplies, failPendingReplies } from '../replies/fail-pending-replies.ts';
import { StoredResponses } from '../stored-responses/stored-responses.ts';
import { PendingReplies } from '../replies/pending-replies.ts';
import type { AbsenceReport } from '../replies/worker-absence.ts';
import { listQueuesInUse } from '../../../shared/work/queue/queues-in-use.ts';

/** Dispatches requests to workers and waits for their replies. */
export interface Dispatch {
  readonly workers: WorkerRegistryStore;
  readonly chats: ChatDispatcher;
  readonly jobs: JobDispatcher;
  readonly durableJobs: DurableJobs;
  readonly embeddings: EmbeddingBatcher;
  readonly storedResponses: StoredResponses;
  readonly images: Readonly<Record<Lane, JobQueue<ImageJob>>>;
  /** Shares of the workers' bulk capacity, for accounts with a lot of work in flight. */
  readonly bulkShares: BulkShares;
  /** What workers did for the requests of this process. */
  readonly facts: FactsInbox;
}

export interface RunningDispatch {
  readonly dispatch: Dispatch;
  readonly reservations: ReservationStore;
  /** Requests whose reservations this process extends by heartbeats. */
  readonly heartbeatRequests: () => HeartbeatRequest[];
  /** Ids of accounts whose callers wait in this process, possibly with duplicates. */
  readonly accounts: () => string[];
  /** Ends the requests of an account with this error, which their callers receive. */
  readonly endAccount: (accountId: string, error: AppError) => void;
  /**
   * Ends event streams of jobs. Resolves when no caller is waiting for a reply.
   * @param closed resolves when no further request can arrive
   */
  readonly drain: (closed: Promise<void>) => Promise<void>;
  /**
   * Ends the responses of all callers with an error, because the process exits before they are complete. Resolves when
   * the queued requests among them have been removed from their queues.
   */
  readonly failCallers: () => Promise<void>;
  /** Call this after `drain`. */
  readonly close: () => Promise<void>;
}

export interface DispatchOptions {
  /** Budget in bytes for whole responses. */
  readonly responseMemory: FairBudget;
  readonly requestStats: RequestStatsRecorder;
  readonly usageMetrics: UsageMetrics;
  /** How long a queue may be without a worker before its callers get an error. */
  readonly noWorkerTimeoutMs: number;
  readonly absenceReport: AbsenceReport;
  readonly log: Logger;
}

export function createDispatch(
  stores: Stores,
  { responseMemory, requestStats, usageMetrics, noWorkerTimeoutMs, absenceReport, log }: DispatchOptions,
): RunningDispatch {
  const { redis, payloadRedis, payloads, subscriber, ledger, hotAccounts, prices, objects, catalog } = stores;
  const workers = new WorkerRegistryStore(redis);
  const facts = new FactsInbox();
  const absence = {
    queuesInUse: () => listQueuesInUse(catalog),
    noWorkerTimeoutMs,
    report: absenceReport,
  };
  const id = randomUUID();
  const replies = new PendingReplies(id, redis, subscriber, workers, responseMemory, log, absence, facts);
  const frames = stores.storedFrames;
  const responses = new ResponseStore(frames, objects);
  const storedResponses = new StoredResponses({
    redis,
    frames,
    responses,
    memory: responseMemory,
    log,
  });
  const finishDeps = { redis, ledger, hotAccounts, requestStats, usageMetrics, prices };
  const reservations = new ReservationStore(redis);
  const jobs = new JobDispatcher(finishDeps, replies, storedResponses, reservations, log);
  const durableJobs = new DurableJobs({ redis, payloads: payloadRedis, storedResponses, log });
  const bulkShares = new BulkShares(redis, workers, id, log);
  const embeddingQueues = {
    quick: new JobQueue<EmbeddingJob>('embedding', redis, payloads),
    bulk: new JobQueue<EmbeddingJob>('embedding-bulk', redis, payloads),
  };
  const images = {
    quick: new JobQueue<ImageJob>('image', redis, payloads),
    bulk: new JobQueue<ImageJob>('image-bulk', redis, payloads),
  };
  const readyQueues = { quick: new ReadyQueue(redis, 'quick'), bulk: new ReadyQueue(redis, 'bulk') };
  const listPending = () => Array.from(replies.entries(), ({ pending }) => pending.request);
  return {
    dispatch: {
      workers,
      chats: new ChatDispatcher(finishDeps, readyQueues, bulkShares, payloads, replies, storedResponses, log),
      jobs,
      durableJobs,
      embeddings: new EmbeddingBatcher(embeddingQueues, bulkShares, jobs),
      storedResponses,
      images,
      bulkShares,
      facts,
    },
    reservations,
    heartbeatRequests: () => [...listPending(), ...durableJobs.placing()],
    accounts: () => [...listPending().map(({ accountId }) => accountId), ...storedResponses.accounts()],
    endAccount(accountId, error) {
      failPendingReplies(replies, accountId, error);
      storedResponses.endAccount(accountId, error);
    },
    async drain(closed) {
      durableJobs.close();
      await closed;
      await replies.drained();
    },
    async failCallers() {
      storedResponses.endReaders();
      await failAllPendingReplies(replies, redis);
    },
    async close() {
      replies.close();
      facts.close();
      bulkShares.close();
      const queues = [embeddingQueues, images].flatMap((byLane) => Object.values(byLane));
      await Promise.all(queues.map((queue) => queue.close()));
    },
  };
}
