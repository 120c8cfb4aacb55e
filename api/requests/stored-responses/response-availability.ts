import type { HeartbeatRequest } from '../../../shared/money/reservation-store.ts';
import { AppError } from '../../../shared/contract/errors.ts';
import { hasEnded, type JobRecord } from '../../../shared/work/jobs/job-record.ts';
import { JobStore } from '../../../shared/work/jobs/job-store.ts';
import { callRedis, type RedisClient } from '../../../shared/platform/redis/redis-client.ts';
import { redisKeys, shardOf } from '../../../shared/platform/redis/redis-keys.ts';
import { describeJobFailure, responseDeleted } from './job-failure.ts';
import { responseGone } from '../../../shared/work/replies/response-store.ts';

/** Interval between checks of whether a missing response can still arrive. */
const checkIntervalMs = 1_000;
/**
 * Maximum time from the end of a request to its last frame. If the worker dies in between, another one takes over
 * within this time.
 */
const lastFrameTimeoutMs = 15_000;

/** Determines whether more of a stored response can still arrive, and whether the part stored so far may be sent. */
export class ResponseAvailability {
  readonly #redis: RedisClient;
  readonly #jobs: JobStore;
  readonly #request: HeartbeatRequest;
  #checkedAtMs = performance.now();
  #endedAtMs: number | null = null;
  #lastAttempt: number | null;

  /** @param succeededAttempt the final attempt of a durable job that is known to have succeeded; skips the look-ups */
  constructor(redis: RedisClient, request: HeartbeatRequest, succeededAttempt: number | null) {
    this.#redis = redis;
    this.#jobs = new JobStore(redis);
    this.#request = request;
    this.#lastAttempt = succeededAttempt;
  }

  /** The final attempt of a durable job that has succeeded. */
  get lastAttempt(): number | null {
    return this.#lastAttempt;
  }

  /**
   * A durable job's response may be sent only once the job has ended. Until then another attempt may replace the one
   * that wrote it.
   * @throws AppError the job's error
   */
  async maySend(): Promise<boolean> {
    if (this.#lastAttempt !== null) return true;
    const { requestId, accountId } = this.#request;
    const job = (await this.#jobs.find(accountId, requestId))?.job ?? null;
    if (job === null) return true;
    if (!hasEnded(job)) return false;
    if (job.error !== null) throw toFailure(job);
    if (job.isResponseDeleted) throw responseDeleted();
    this.#lastAttempt = job.attempts;
    return true;
  }

  /**
   * Called while there is nothing more to read. A request without a reservation has ended: its last frame is stored, in
   * transit or lost.
   * @throws AppError if nothing will arrive
   */
  async checkAlive(): Promise<void> {
    // A job's response is stored before the job succeeds.
    if (this.#lastAttempt !== null) throw responseGone();
    const nowMs = performance.now();
    if (nowMs - this.#checkedAtMs < checkIntervalMs) return;
    this.#checkedAtMs = nowMs;
    if (await this.#isAlive()) {
      this.#endedAtMs = null;
      return;
    }
    if (this.#lastAttempt !== null) return;
    this.#endedAtMs ??= nowMs;
    if (nowMs - this.#endedAtMs > lastFrameTimeoutMs)
      throw new AppError('service_unavailable', {
        message: 'The request ended without a response.',
        possiblyChargedId: this.#request.requestId,
      });
  }

  async #isAlive(): Promise<boolean> {
    const { requestId, accountId } = this.#request;
    const reservations = redisKeys.reservations(shardOf(accountId));
    if ((await callRedis(() => this.#redis.hexists(reservations, requestId))) === 1) return true;
    // A durable job's reservation is in the job record.
    return !(await this.maySend());
  }
}

/** The error for callers that wait for the response of a job that ended without one. */
function toFailure(job: JobRecord): AppError {
  const failure = describeJobFailure(job);
  if (failure.code !== 'job_cancelled') return failure;
  return new AppError(failure.code, {
    status: failure.status,
    message:
      `This request was waiting for a job with the same Idempotency-Key. ${failure.message} Send the request again to run it: the ` +
      'key can be reused.',
  });
}
