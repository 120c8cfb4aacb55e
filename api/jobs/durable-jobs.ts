// decision 0053
import { setTimeout as delay } from 'node:timers/promises';
import { releaseReservation } from '../../shared/work/settlement/settle-script.ts';
import { AppError, toAppError } from '../../shared/contract/errors.ts';
import { jobPath } from '../../shared/contract/jobs.ts';
import { cancelJob } from '../../shared/work/jobs/end-job-scripts.ts';
import { JobOutlooks } from './job-outlooks.ts';
import type { JobOperation, JobStatus, JobWebhookEvent } from '../../shared/contract/job-terms.ts';
import { JobStore, type FoundJob } from '../../shared/work/jobs/job-store.ts';
import { JobTurns } from '../../shared/work/jobs/job-turns-store.ts';
import { placeJob, type PlacedJob } from '../../shared/work/jobs/place-job-script.ts';
import { noEstimate } from '../../shared/work/jobs/present-job.ts';
import { isResponseStored, type AdmittedRequest } from '../../shared/money/admitted-request.ts';
import type { Job } from '../../shared/work/queue/job-kinds.ts';
import { callRedis, type RedisClient } from '../../shared/platform/redis/redis-client.ts';
import { redisKeys, shardOf } from '../../shared/platform/redis/redis-keys.ts';
import { retryThroughOutage } from '../../shared/platform/redis/retry-through-outage.ts';
import { sendControl } from '../../shared/work/replies/worker-control.ts';
import { encodeWholeJson } from '../../shared/encoding/json-pieces.ts';
import type { Logger } from '../../shared/platform/runtime/logger.ts';
import type { JobView } from './job-text.ts';
import { JobStandings } from './job-standings.ts';
import type { StoredResponses } from '../requests/stored-responses/stored-responses.ts';

export interface DurableJobsDeps {
  readonly redis: RedisClient;
  /** A separate connection for bodies, so that small commands do not queue behind them. */
  readonly payloads: RedisClient;
  readonly storedResponses: Pick<StoredResponses, 'fail'>;
  readonly log: Logger;
}

/** The work of a request that becomes a durable job. */
export interface DurableWork {
  readonly operation: JobOperation;
  /** The job to run. Its `replyChannel` is `noChannel`, because no process waits for a reply. */
  readonly job: Job;
  /** Encoding of the vectors in the response; null if it has none. */
  readonly format: string | null;
  /** Milliseconds from the admission until the job is cancelled; null for never. */
  readonly cancelAfterMs: number | null;
  readonly webhookUrl: string | null;
  readonly webhookEvents: readonly JobWebhookEvent[];
  /** The public URL of the gateway, for webhooks. */
  readonly publicUrl: string;
}

/** What an endpoint knows of the work; the rest are options that the caller sets. */
export type EndpointWork = Pick<DurableWork, 'operation' | 'job' | 'format'>;

export interface JobViewPage {
  readonly total: number;
  readonly jobs: readonly JobView[];
}

/** Usual maximum time from admission until the job is created. Very large requests may take longer. */
const creationTimeoutMs = 2_000;
const pollMs = 50;
/** How long to keep checking whether a job exists if Redis did not reply when the job was created. */
const uncertaintyTimeoutMs = 5_000;
const outagePauseMs = 200;

/** Creates, shows and cancels durable jobs. All methods throw `service_unavailable` while Redis is down. */
export class DurableJobs {
  readonly #deps: DurableJobsDeps;
  readonly #turns: JobTurns;
  readonly #store: JobStore;
  readonly #standings: JobStandings;
  readonly #closing = new AbortController();
  readonly #placing = new Set<AdmittedRequest>();

  constructor(deps: DurableJobsDeps) {
    const { redis } = deps;
    this.#deps = deps;
    this.#turns = new JobTurns(redis);
    this.#store = new JobStore(redis);
    this.#standings = new JobStandings(this.#store, new JobOutlooks((queue) => this.#turns.outlook(queue)));
  }

  /** Aborted when the process stops. Event streams end, and their readers reconnect to another process. */
  get closing(): AbortSignal {
    return this.#closing.signal;
  }

  close(): void {
    this.#closing.abort();
  }

  /**
   * Admitted requests whose jobs are being created. Creating a job with a large body takes a while, during which the
   * request's reservation needs heartbeats.
   */
  placing(): Iterable<AdmittedRequest> {
    return this.#placing;
  }

  /**
   * Creates a durable job from an admitted request, and returns the new job. On failure, the request's reservation is
   * released.
   * @throws AppError `too_many_jobs`, `queue_full`
   */
  async place(request: AdmittedRequest, work: DurableWork): Promise<JobView> {
    this.#placing.add(request);
    try {
      return await this.#place(request, work);
    } finally {
      this.#placing.delete(request);
    }
  }

  async #place(request: AdmittedRequest, { job, ...work }: DurableWork): Promise<JobView> {
    const { redis, payloads } = this.#deps;
    const { requestId: id, accountId, model } = request;
    const queue = job.kind;
    let placed: PlacedJob;
    try {
      placed = await placeJob(redis, payloads, {
        id,
        accountId,
        queue,
        model,
        timeoutMs: request.deadlineAtMs - request.admittedAtMs,
        ...work,
        body: await encodeWholeJson({ v: 1, job }, accountId),
      });
    } catch (error) {
      const found = await this.#releaseOrFind(request, error);
      if (found === null) throw error;
      // The fair-queue index does not contain this job yet. The index is repaired later from the account's job list.
      return await this.#describe(found);
    }
    // Both commands run in one round trip. The fair-queue index is updated first, so that it includes this job when its
    // position is looked up.
    const [, view] = await Promise.all([
      this.#updateFairQueue(() => this.#turns.add({ queue, model }, accountId, placed.weight)),
      this.#describe(placed),
    ]);
    return view;
  }

  /** Describes an existing job, even if its position cannot be determined. */
  async #describe(found: FoundJob): Promise<JobView> {
    return { job: found.job, estimate: await this.#standings.find(found).catch(() => noEstimate) };
  }

  /** Returns null if the account has no such job. */
  async find(accountId: string, id: string): Promise<JobView | null> {
    const found = await this.#store.find(accountId, id);
    return found === null ? null : { job: found.job, estimate: await this.#standings.find(found) };
  }

  /** Finds several jobs in one look-up. Ids that the account has no job for are skipped. */
  async findMany(accountId: string, ids: readonly string[]): Promise<JobView[]> {
    return await this.#estimateAll(accountId, await this.#store.findMany(accountId, ids));
  }

  /**
   * Like `find`, for a request admitted by another call, which may be about to create its job. Stops waiting once the
   * request has no reservation, because then it has either become a job or ended without one.
   */
  async findOnceCreated(accountId: string, id: string, signal: AbortSignal): Promise<JobView | null> {
    const { redis } = this.#deps;
    const reservations = redisKeys.reservations(shardOf(accountId));
    for (const untilMs = performance.now() + creationTimeoutMs; ;) {
      // Check the reservation before the job. Creating the job moves the reservation into the job record in one step,
      // so in the other order both could be missed.
      const isHeld = (await callRedis(() => redis.hexists(reservations, id))) === 1;
      const view = await this.find(accountId, id);
      if (view !== null || !isHeld || performance.now() > untilMs || signal.aborted) return view;
      await delay(pollMs);
    }
  }

  /** Newest first. @param status null for all */
  async list(
    accountId: string,
    status: JobStatus | null,
    page: { readonly page: number; readonly pageSize: number },
  ): Promise<JobViewPage> {
    const { total, jobs } = await this.#store.list(accountId, status, page);
    return { total, jobs: await this.#estimateAll(accountId, jobs) };
  }

  async #estimateAll(accountId: string, found: readonly FoundJob[]): Promise<JobView[]> {
    const estimates = await this.#standings.findAll(accountId, found);
    return found.map(({ job }, i) => ({ job, estimate: estimates[i]! }));
  }

  /** Records that the response of a job is deleted, if the job has ended. */
  async markResponseDeleted(accountId: string, id: string): Promise<'deleted' | 'unfinished' | 'unknown'> {
    return await this.#store.markResponseDeleted(accountId, id);
  }

  /**
   * Cancels a job. A waiting job is removed immediately; for a running job, its worker is notified.
   * @returns whether the account has such a job
   */
  async cancel(accountId: string, id: string): Promise<boolean> {
    const { redis } = this.#deps;
    const cancellation = await cancelJob(redis, accountId, id);
    if (cancellation.outcome === 'cancelled') {
      const { queue, model } = cancellation;
      await this.#updateFairQueue(() => this.#turns.drop({ queue, model }, accountId));
    }
    if (cancellation.outcome === 'requested') await this.#notifyWorker(cancellation.workerId, id);
    return cancellation.outcome !== 'unknown';
  }

  /** A worker that misses the message finds the cancellation in the record at its next heartbeat. */
  async #notifyWorker(workerId: string, jobId: string): Promise<void> {
    const { redis, log } = this.#deps;
    try {
      await sendControl(redis, workerId, { action: 'cancel-job', jobId });
    } catch (error) {
      log.debug({ jobId, err: error }, 'worker message not delivered');
    }
  }

  /** Updates the fair-queue index. The index is repaired from the job lists, so a missed update is not an error. */
  async #updateFairQueue(update: () => Promise<void>): Promise<void> {
    try {
      await update();
    } catch (error) {
      this.#deps.log.warn({ err: error }, 'update of the index of waiting jobs failed');
    }
  }

  /**
   * Releases the reservation of a request whose job could not be created, and fails the callers that sent the request
   * again in the meantime. If Redis did not reply when the job was created, the job may exist, and a client that sends
   * the request again would pay twice. In that case Redis is queried again for some seconds, until it replies.
   * @returns the job if it exists
   * @throws AppError `service_unavailable` if that cannot be determined
   */
  async #releaseOrFind(request: AdmittedRequest, reason: unknown): Promise<FoundJob | null> {
    const { redis, storedResponses, log } = this.#deps;
    const { accountId, requestId } = request;
    const mayExist = isOutage(reason);
    const untilMs = performance.now() + uncertaintyTimeoutMs;
    const releaseOrFind = async (): Promise<FoundJob | null> => {
      const { outcome } = await releaseReservation(redis, request);
      if (outcome !== 'settled') return mayExist ? await this.#store.find(accountId, requestId) : null;
      if (isResponseStored(request)) storedResponses.fail(request, toAppError(reason));
      return null;
    };
    try {
      return await retryThroughOutage(releaseOrFind, {
        isOutage: () => mayExist && performance.now() < untilMs,
        pauseMs: outagePauseMs,
      });
    } catch (error) {
      log.warn({ requestId, err: error }, 'reservation not released yet');
      if (mayExist) throw uncertainOutcome(requestId, reason);
      return null;
    }
  }
}

const uncertainOutcome = (id: string, cause: unknown): AppError =>
  new AppError('service_unavailable', {
    message:
      'Part of the service is unavailable, and the job may or may not have been created. Before you send the request ' +
      `again, check whether the job exists with GET ${jobPath(id)}.`,
    expose: true,
    cause,
  });

const isOutage = (error: unknown): boolean => toAppError(error).code === 'service_unavailable';
