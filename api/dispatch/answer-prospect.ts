import type { HeldRequest } from '../../shared/billing/reservation-store.ts';
import { AppError, cancelledJobStatus } from '../../shared/contract/errors.ts';
import { hasEnded, type JobRecord } from '../../shared/jobs/job-record.ts';
import { JobStore } from '../../shared/jobs/job-store.ts';
import { callRedis, type RedisClient } from '../../shared/redis/redis-client.ts';
import { redisKeys, shardOf } from '../../shared/redis/redis-keys.ts';
import { answerGone } from '../../shared/reply/answer-store.ts';

/** How often it is asked whether an answer that does not come can still come. */
const lookIntervalMs = 1_000;
/** From the end of a request to its last frame; a worker that died in between is replaced within it. */
const lastFramePatienceMs = 15_000;

/** Whether the kept answer of a request can still come, and whether what is there of it may be told. */
export class AnswerProspect {
  readonly #redis: RedisClient;
  readonly #jobs: JobStore;
  readonly #request: HeldRequest;
  #lookedAtMs = performance.now();
  #endedAtMs: number | null = null;
  #lastAttempt: number | null;

  /** @param succeededAttempt of a durable job that is known to have succeeded: nothing is asked for then */
  constructor(redis: RedisClient, request: HeldRequest, succeededAttempt: number | null) {
    this.#redis = redis;
    this.#jobs = new JobStore(redis);
    this.#request = request;
    this.#lastAttempt = succeededAttempt;
  }

  /** Of a durable job that has succeeded: the attempt whose answer counts. */
  get lastAttempt(): number | null {
    return this.#lastAttempt;
  }

  /**
   * Of a durable job an answer may be told once the job has ended: until then another attempt may take the place of the one
   * that left it.
   * @throws AppError what the job failed with
   */
  async mayBeTold(): Promise<boolean> {
    if (this.#lastAttempt !== null) return true;
    const { requestId, accountId } = this.#request;
    const job = (await this.#jobs.find(accountId, requestId))?.job ?? null;
    if (job === null) return true;
    if (!hasEnded(job)) return false;
    if (job.error !== null) throw toFailure(job.error);
    this.#lastAttempt = job.attempts;
    return true;
  }

  /**
   * Called while there is nothing more to read. A request that holds nothing any more has ended: its last frame is there, or
   * about to be, or lost.
   * @throws AppError where nothing will come
   */
  async look(): Promise<void> {
    // The answer of a job is kept before the job has succeeded.
    if (this.#lastAttempt !== null) throw answerGone();
    const nowMs = performance.now();
    if (nowMs - this.#lookedAtMs < lookIntervalMs) return;
    this.#lookedAtMs = nowMs;
    if (await this.#isAlive()) {
      this.#endedAtMs = null;
      return;
    }
    if (this.#lastAttempt !== null) return;
    this.#endedAtMs ??= nowMs;
    if (nowMs - this.#endedAtMs > lastFramePatienceMs)
      throw new AppError('service_unavailable', { message: 'The request ended without an answer.' });
  }

  async #isAlive(): Promise<boolean> {
    const { requestId, accountId } = this.#request;
    const reservations = redisKeys.reservations(shardOf(accountId));
    if ((await callRedis(() => this.#redis.hexists(reservations, requestId))) === 1) return true;
    // What a durable job holds is in its own record.
    return !(await this.mayBeTold());
  }
}

/** What callers who wait for the answer of a job are told of its end without one. */
function toFailure({ code, message }: NonNullable<JobRecord['error']>): AppError {
  if (code !== 'job_cancelled') return new AppError(code, { message, expose: true });
  return new AppError(code, {
    status: cancelledJobStatus,
    message:
      `This request waited for a job of the same Idempotency-Key. ${message} Send the request again to have it done: the ` +
      'key is free for that.',
  });
}
