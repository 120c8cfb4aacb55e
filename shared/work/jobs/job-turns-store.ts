// decision 0052
import type { QueueName } from '../queue/job-kinds.ts';
import { callRedis, type RedisClient } from '../../platform/redis/redis-client.ts';
import {
  maxWeight,
  type HeldJobs,
  type JobLine,
  type JobTurn,
  type RunningJob,
  type TurnLine,
  type TurnQueue,
} from './job-line.ts';
import type { JobOutlook } from './job-outlook.ts';
import { runAdd, runDrop, runSettle, runSync, runTake } from './job-turns-script.ts';
import { runEnd, runOutlook, runRenew, runStart, runSurvey, type TurnSurvey } from './running-jobs-script.ts';

/** Moves a weight into the allowed range, so that it cannot block a queue. */
const clampWeight = (weight: number): number => Math.min(maxWeight, Math.max(1, Math.round(weight) || 1));

/**
 * Decides whose durable job is next, across all accounts. It is an index of the lists of waiting jobs, which are stored
 * in the shards of their accounts, and holds neither jobs nor money. Accounts share a model queue by start-time fair
 * queueing:
 * a turn takes virtual time in inverse proportion to the account's weight, the account with the earliest start tag is
 * next, and an account that starts to wait begins at the current virtual time, regardless of the backlog of others.
 *
 * Callers put a job on its account's list before `add`, and take it off before `settle` or `drop`. `sync` repairs the
 * index after a crash in between.
 *
 * @throws AppError `service_unavailable` while Redis is unavailable
 */
export class JobTurns {
  readonly #redis: RedisClient;

  constructor(redis: RedisClient) {
    this.#redis = redis;
  }

  /** Adds a job that was put on its account's list. */
  async add(line: TurnLine, accountId: string, weight: number): Promise<void> {
    await callRedis(() => runAdd(this.#redis, line, accountId, clampWeight(weight)));
  }

  /**
   * Takes up to `count` turns. Models take turns too, so that one without capacity does not block the others.
   * @param capacities how many more jobs of each model the worker can take; models that are not in the map get none
   * @param held the jobs that the worker already holds; an account that holds as many as the remaining capacity gets
   * no turn. Null lets one account use all of it.
   */
  async take(
    queue: TurnQueue,
    count: number,
    capacities: ReadonlyMap<string, number>,
    held: HeldJobs | null = null,
  ): Promise<JobTurn[]> {
    return await callRedis(() => runTake(this.#redis, queue, count, capacities, held));
  }

  /**
   * Ends a turn.
   * @param remaining length of the account's list afterwards
   * @param isUsed false if the list was empty: the account is then not charged virtual time for the turn
   */
  async settle(queue: TurnQueue, turn: JobTurn, remaining: number, isUsed = true): Promise<void> {
    await callRedis(() => runSettle(this.#redis, queue, turn, remaining, isUsed));
  }

  /** Corrects the count to the real length of the account's list. Adds a missing account but never removes one. */
  async sync(line: TurnLine, accountId: string, weight: number, waiting: number): Promise<void> {
    await callRedis(() => runSync(this.#redis, line, accountId, clampWeight(weight), waiting));
  }

  /** Drops a waiting job that was cancelled or discarded and is no longer on its account's list. */
  async drop(line: TurnLine, accountId: string): Promise<void> {
    await callRedis(() => runDrop(this.#redis, line, accountId));
  }

  /**
   * Marks a job as running until it is ended or its lease expires.
   * @param leaseMs must be the same for all jobs, so that the lease renewed last also expires last
   */
  async markStarted(line: JobLine, jobId: string, leaseMs: number): Promise<void> {
    await callRedis(() => runStart(this.#redis, { line, jobId }, leaseMs));
  }

  /**
   * Renews the leases of running jobs. A job that is missing from the index is added to it again. So call this before
   * any of the jobs can end: otherwise a job that has ended would be added again.
   */
  async renewLeases(jobs: readonly RunningJob[], leaseMs: number): Promise<void> {
    const queues = [...new Set(jobs.map(({ line }) => line.queue))];
    const renewQueue = async (queue: QueueName): Promise<void> => {
      const ofQueue = jobs.filter(({ line }) => line.queue === queue);
      await runRenew(this.#redis, queue, ofQueue, leaseMs);
    };
    await callRedis(() => Promise.all(queues.map(renewQueue)));
  }

  /**
   * Marks a job as no longer running.
   * @param serviceMs milliseconds from its start to its end; null if it is not representative of other jobs
   */
  async markEnded(line: JobLine, jobId: string, serviceMs: number | null): Promise<void> {
    await callRedis(() => runEnd(this.#redis, line, jobId, serviceMs));
  }

  /** Reads a model queue's outlook. Takes time in proportion to the waiting accounts. `JobOutlooks` caches it. */
  async outlook(line: JobLine): Promise<JobOutlook> {
    return await callRedis(() => runOutlook(this.#redis, line));
  }

  /** Counts jobs over all models of the queue. */
  async counts(queue: QueueName): Promise<{ readonly waiting: number; readonly running: number }> {
    const { queues } = await this.survey([queue], 0);
    const models = queues[0]!;
    const sum = (field: 'waiting' | 'running'): number =>
      models.reduce((total, model) => total + model[field], 0);
    return { waiting: sum('waiting'), running: sum('running') };
  }

  /** Counts the jobs or batches of each model of these queues. @param maxAccounts waiting accounts per model */
  async survey(queues: readonly TurnQueue[], maxAccounts: number): Promise<TurnSurvey> {
    return await callRedis(() => runSurvey(this.#redis, queues, maxAccounts));
  }
}
