import type { QueueName } from '../queue/job-kinds.ts';
import { callRedis, type RedisClient } from '../redis/redis-client.ts';
import { maxWeight, type HeldJobs, type JobLine, type JobTurn, type RunningJob } from './job-line.ts';
import type { JobOutlook } from './job-outlook.ts';
import { runAdd, runDrop, runSettle, runSync, runTake } from './job-turns-script.ts';
import { runCount, runEnd, runOutlook, runRenew, runStart } from './running-jobs-script.ts';

/** A weight outside the contract must not stop a line. */
const boundWeight = (weight: number): number => Math.min(maxWeight, Math.max(1, Math.round(weight) || 1));

/**
 * Whose durable job is next, over all accounts: an index beside the lists of waiting jobs, which lie in the shards of
 * their accounts. It knows no job and no money. Accounts share a line by start-time fair queueing: a turn takes virtual
 * time in inverse proportion to the account's weight, the account with the earliest start tag is next, and one that
 * begins to wait starts at the current virtual time, whatever backlog others have.
 *
 * Jobs are put on their account's list before `add`, and taken from it before `settle` or `drop`. What a crash in between
 * leaves behind is repaired by `sync`.
 *
 * @throws AppError `service_unavailable` while Redis is away
 */
export class JobTurns {
  readonly #redis: RedisClient;

  constructor(redis: RedisClient) {
    this.#redis = redis;
  }

  /** A job was put on its account's list. */
  async add(line: JobLine, accountId: string, weight: number): Promise<void> {
    await callRedis(() => runAdd(this.#redis, line, accountId, boundWeight(weight)));
  }

  /**
   * Up to `count` turns. Models take turns too, so that one without room does not block the others.
   * @param room how many more jobs of each model the worker takes; none of models that are not in it
   * @param held what the worker holds already; an account that holds as much as is left of the room gets no turn. Null where
   * one account may have all of it
   */
  async take(
    queue: QueueName,
    count: number,
    room: ReadonlyMap<string, number>,
    held: HeldJobs | null = null,
  ): Promise<JobTurn[]> {
    return await callRedis(() => runTake(this.#redis, queue, count, room, held));
  }

  /**
   * A turn is over.
   * @param left what the account's list held afterwards
   * @param isUsed false where the list was empty: the turn then does not count against the account
   */
  async settle(queue: QueueName, turn: JobTurn, left: number, isUsed = true): Promise<void> {
    await callRedis(() => runSettle(this.#redis, queue, turn, left, isUsed));
  }

  /** Repair: what the account's list really holds. Puts the account back where it is missing, and never takes it out. */
  async sync(line: JobLine, accountId: string, weight: number, waiting: number): Promise<void> {
    await callRedis(() => runSync(this.#redis, line, accountId, boundWeight(weight), waiting));
  }

  /** A waiting job was cancelled or dropped, and is no longer on its account's list. */
  async drop(line: JobLine, accountId: string): Promise<void> {
    await callRedis(() => runDrop(this.#redis, line, accountId));
  }

  /**
   * A job runs. It counts as running until it is ended or its lease runs out.
   * @param leaseMs the same for all jobs: no lease of a line outlasts the latest one
   */
  async started(line: JobLine, jobId: string, leaseMs: number): Promise<void> {
    await callRedis(() => runStart(this.#redis, { line, jobId }, leaseMs));
  }

  /** They still run. A job that the index has lost is put back: so all of it is sent before any of them can end. */
  async renewed(jobs: readonly RunningJob[], leaseMs: number): Promise<void> {
    const queues = [...new Set(jobs.map(({ line }) => line.queue))];
    const renewQueue = async (queue: QueueName): Promise<void> => {
      const ofQueue = jobs.filter(({ line }) => line.queue === queue);
      await runRenew(this.#redis, queue, ofQueue, leaseMs);
    };
    await callRedis(() => Promise.all(queues.map(renewQueue)));
  }

  /** @param serviceMs how long it took from its start to its end; null where that says nothing about other jobs */
  async ended(line: JobLine, jobId: string, serviceMs: number | null): Promise<void> {
    await callRedis(() => runEnd(this.#redis, line, jobId, serviceMs));
  }

  /** Takes time in proportion to the accounts that wait; `JobOutlooks` keeps it for its callers. */
  async outlook(line: JobLine): Promise<JobOutlook> {
    return await callRedis(() => runOutlook(this.#redis, line));
  }

  /** Over all models of the queue. */
  async counts(queue: QueueName): Promise<{ readonly waiting: number; readonly running: number }> {
    return await callRedis(() => runCount(this.#redis, queue));
  }
}
