import { setTimeout as delay } from 'node:timers/promises';
import { releaseReservation } from '../../shared/billing/settle-script.ts';
import { AppError, toAppError } from '../../shared/contract/errors.ts';
import { jobPath } from '../../shared/contract/jobs.ts';
import { cancelJob } from '../../shared/jobs/end-job-scripts.ts';
import { JobOutlooks } from '../../shared/jobs/job-outlooks.ts';
import type { JobOperation, JobStatus } from '../../shared/jobs/job-record.ts';
import { JobStore, type FoundJob } from '../../shared/jobs/job-store.ts';
import { JobTurns } from '../../shared/jobs/job-turns-store.ts';
import { placeJob, type PlacedJob } from '../../shared/jobs/place-job-script.ts';
import { noStanding } from '../../shared/jobs/present-job.ts';
import { isKept, type AdmittedRequest, type Job } from '../../shared/queue/job-kinds.ts';
import { maxInlineBytes } from '../../shared/queue/payload-limits.ts';
import { callRedis, type RedisClient } from '../../shared/redis/redis-client.ts';
import { redisKeys, shardOf } from '../../shared/redis/redis-keys.ts';
import { throughOutage } from '../../shared/redis/through-outage.ts';
import { sendControl } from '../../shared/reply/reply-channel.ts';
import { encodeLargeJson, isLongJson } from '../../shared/runtime/json-pieces.ts';
import type { Logger } from '../../shared/runtime/logger.ts';
import type { ShownJob } from '../present/job-text.ts';
import { JobStandings } from './job-standings.ts';
import type { KeptAnswers } from './kept-answers.ts';

export interface DurableJobsDependencies {
  readonly redis: RedisClient;
  /** Carries bodies: nothing small waits behind them. */
  readonly payloads: RedisClient;
  readonly kept: Pick<KeptAnswers, 'fail'>;
  readonly log: Logger;
}

/** The work of a request that becomes a durable job. */
export interface DurableWork {
  readonly operation: JobOperation;
  /** Answers nobody: its `replyChannel` is `noChannel`. */
  readonly job: Job;
  /** How vectors are written in its response; null where it has none. */
  readonly format: string | null;
  readonly webhookUrl: string | null;
}

export interface ShownJobPage {
  readonly total: number;
  readonly jobs: readonly ShownJob[];
}

/** From the admission of a request until its job is placed, but for very large ones. */
const placingMs = 2_000;
const lookAgainMs = 50;
/** How long Redis is asked whether a job exists, if it did not answer when the job was placed. */
const doubtMs = 5_000;
const outagePauseMs = 200;

/** Durable jobs, as the api makes, shows and cancels them. All methods throw `service_unavailable` while Redis is away. */
export class DurableJobs {
  readonly #dependencies: DurableJobsDependencies;
  readonly #turns: JobTurns;
  readonly #store: JobStore;
  readonly #standings: JobStandings;
  readonly #closing = new AbortController();
  readonly #placing = new Set<AdmittedRequest>();

  constructor(dependencies: DurableJobsDependencies) {
    const { redis } = dependencies;
    this.#dependencies = dependencies;
    this.#turns = new JobTurns(redis);
    this.#store = new JobStore(redis);
    this.#standings = new JobStandings(this.#store, new JobOutlooks((line) => this.#turns.outlook(line)));
  }

  /** Aborted when the process stops: its event streams end, and their readers go on at another. */
  get closing(): AbortSignal {
    return this.#closing.signal;
  }

  close(): void {
    this.#closing.abort();
  }

  /** Admitted requests whose jobs are being made. A large body takes its time, and their reservations must last for it. */
  placing(): Iterable<AdmittedRequest> {
    return this.#placing;
  }

  /**
   * Makes a durable job of an admitted request, and answers with it as it was made. Where that fails the request holds
   * nothing any more.
   * @throws AppError `too_many_jobs`, `queue_full`
   */
  async place(request: AdmittedRequest, work: DurableWork): Promise<ShownJob> {
    this.#placing.add(request);
    try {
      return await this.#place(request, work);
    } finally {
      this.#placing.delete(request);
    }
  }

  async #place(
    request: AdmittedRequest,
    { operation, job, format, webhookUrl }: DurableWork,
  ): Promise<ShownJob> {
    const { redis, payloads } = this.#dependencies;
    const { requestId: id, accountId, model } = request;
    const queue = job.kind;
    let placed: PlacedJob;
    try {
      placed = await placeJob(redis, payloads, {
        id,
        accountId,
        queue,
        model,
        operation,
        timeoutMs: request.deadlineAtMs - request.admittedAtMs,
        format,
        webhookUrl,
        body: await encodeBody({ v: 1, job }, accountId),
      });
    } catch (error) {
      const found = await this.#releaseOrFind(request, error);
      if (found === null) throw error;
      // The index of turns learns of it from the account's list.
      return await this.#describe(found);
    }
    // Both in one trip; the index is told first, so that it knows of this job when it is asked for the job's place.
    const [, shown] = await Promise.all([
      this.#noteTurn(() => this.#turns.add({ queue, model }, accountId, placed.weight)),
      this.#describe(placed),
    ]);
    return shown;
  }

  /** A job that is there is answered with as such, whether or not it is known where it stands. */
  async #describe(found: FoundJob): Promise<ShownJob> {
    return { job: found.job, standing: await this.#standings.find(found).catch(() => noStanding) };
  }

  /** Null where the account has no such job. */
  async find(accountId: string, id: string): Promise<ShownJob | null> {
    const found = await this.#store.find(accountId, id);
    return found === null ? null : { job: found.job, standing: await this.#standings.find(found) };
  }

  /**
   * As `find`, of a request that another call has been admitted for, and may be about to place. One that holds nothing, in
   * a job or without one, has ended: nothing is waited for then.
   */
  async findWhenPlaced(accountId: string, id: string, signal: AbortSignal): Promise<ShownJob | null> {
    const { redis } = this.#dependencies;
    const reservations = redisKeys.reservations(shardOf(accountId));
    for (const untilMs = performance.now() + placingMs; ;) {
      // In this order: what it holds becomes the job's in one step.
      const isHeld = (await callRedis(() => redis.hexists(reservations, id))) === 1;
      const shown = await this.find(accountId, id);
      if (shown !== null || !isHeld || performance.now() > untilMs || signal.aborted) return shown;
      await delay(lookAgainMs);
    }
  }

  /** The newest first. @param status null for all of them */
  async list(
    accountId: string,
    status: JobStatus | null,
    page: { readonly page: number; readonly pageSize: number },
  ): Promise<ShownJobPage> {
    const { total, jobs } = await this.#store.list(accountId, status, page);
    const shown = jobs.map(async (found) => ({
      job: found.job,
      standing: await this.#standings.find(found),
    }));
    return { total, jobs: await Promise.all(shown) };
  }

  /**
   * Cancels a job: one that waits is gone at once, and the worker of one that runs is told.
   * @returns whether the account has such a job
   */
  async cancel(accountId: string, id: string): Promise<boolean> {
    const { redis } = this.#dependencies;
    const cancellation = await cancelJob(redis, accountId, id);
    if (cancellation.outcome === 'cancelled') {
      const { queue, model } = cancellation;
      await this.#noteTurn(() => this.#turns.drop({ queue, model }, accountId));
    }
    if (cancellation.outcome === 'asked') await this.#tellWorker(cancellation.workerId, id);
    return cancellation.outcome !== 'unknown';
  }

  /** A worker that does not hear it reads it in the record when it next says that it has the job. */
  async #tellWorker(workerId: string, jobId: string): Promise<void> {
    const { redis, log } = this.#dependencies;
    try {
      await sendControl(redis, workerId, { action: 'cancel-job', jobId });
    } catch (error) {
      log.debug({ jobId, err: error }, 'a worker could not be told');
    }
  }

  /** The index of turns is repaired from the lists of the jobs: what it misses is no reason to fail. */
  async #noteTurn(note: () => Promise<void>): Promise<void> {
    try {
      await note();
    } catch (error) {
      this.#dependencies.log.warn({ err: error }, 'the index of waiting jobs could not be told');
    }
  }

  /**
   * Gives back what a request holds that did not become a job, and tells those who sent it again meanwhile. If Redis did not
   * answer when the job was placed, the job may exist all the same, and a client that sent the request again would pay
   * twice. In that case Redis is asked again for some seconds, until it answers.
   * @returns the job where it is there
   * @throws AppError `service_unavailable` where that cannot be known
   */
  async #releaseOrFind(request: AdmittedRequest, reason: unknown): Promise<FoundJob | null> {
    const { redis, kept, log } = this.#dependencies;
    const { accountId, requestId } = request;
    const mayBeThere = isOutage(reason);
    const untilMs = performance.now() + doubtMs;
    const releaseOrFind = async (): Promise<FoundJob | null> => {
      const { outcome } = await releaseReservation(redis, request);
      if (outcome !== 'settled') return mayBeThere ? await this.#store.find(accountId, requestId) : null;
      if (isKept(request)) kept.fail(request, toAppError(reason));
      return null;
    };
    try {
      return await throughOutage(releaseOrFind, {
        isOutage: () => mayBeThere && performance.now() < untilMs,
        pauseMs: outagePauseMs,
      });
    } catch (error) {
      log.warn({ requestId, err: error }, 'a reservation could not be released yet');
      if (mayBeThere) throw inDoubt(requestId, reason);
      return null;
    }
  }
}

const inDoubt = (id: string, cause: unknown): AppError =>
  new AppError('service_unavailable', {
    message:
      'A part of the service is away, and it is not known whether the job was made. Before you send the request again, ' +
      `look for it with GET ${jobPath(id)}.`,
    expose: true,
    cause,
  });

const isOutage = (error: unknown): boolean => toAppError(error).code === 'service_unavailable';

/** In turns of the account where it is large. */
async function encodeBody(body: { readonly v: 1; readonly job: Job }, accountId: string): Promise<Buffer> {
  if (!isLongJson(body, maxInlineBytes)) return Buffer.from(JSON.stringify(body));
  return await encodeLargeJson(body, accountId);
}
