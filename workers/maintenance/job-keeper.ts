import {
  cancelOverdueJobs,
  expireJobs,
  findDueHooks,
  findDueTasks,
  deleteEndedJobs,
  limitCancelTimes,
  listWaitingLists,
  recoverLostJobs,
  markHookQueued,
  type DueHook,
} from '../../shared/work/jobs/end-job-scripts.ts';
import type { JobLine } from '../../shared/work/jobs/job-line.ts';
import type { JobTurns } from '../../shared/work/jobs/job-turns-store.ts';
import { callRedis, type RedisClient } from '../../shared/platform/redis/redis-client.ts';
import { shardCount } from '../../shared/platform/redis/redis-keys.ts';
import type { Logger } from '../../shared/platform/runtime/logger.ts';
import { createThrottledWarning } from '../../shared/platform/runtime/throttled-warning.ts';
import { sendControl } from '../../shared/work/replies/worker-control.ts';
import type { Faults } from '../reporting/faults.ts';
import type { BatchKeeper } from '../batches/batch-keeper.ts';
import type { ShardLeases } from '../ledger/shard-leases.ts';
import { liveness } from '../../shared/platform/redis/liveness.ts';

/** How often the index across accounts is synced with the lists that it summarizes. */
const syncIntervalMs = 5_000;
/** Normal clock adjustments are smaller than this. */
const clockStepMs = 2_000;
/** Maximum number of script executions per shard and pass. */
const maxExecutions = 16;

export interface JobKeeperOptions {
  readonly redis: RedisClient;
  readonly turns: Pick<JobTurns, 'add' | 'drop' | 'sync'>;
  readonly leases: ShardLeases;
  readonly batches: BatchKeeper;
  /** Adds a job's webhook to its queue. Idempotent. */
  readonly queueHook: (hook: DueHook) => Promise<void>;
  /** Whether this worker's catalog has the model of these jobs. */
  readonly knowsModel: (line: JobLine) => boolean;
  readonly faults: Faults;
  readonly log: Logger;
}

/**
 * Maintains the durable jobs and batches of this worker's shards: requeues jobs whose workers died, ends jobs that did not start or
 * end in time, queues the webhooks of started and ended jobs, and deletes jobs that ended a day ago.
 */
export class JobKeeper {
  readonly #options: JobKeeperOptions;
  /** Per shard: since when this worker has maintained it without interruption, and when its index was last synced. */
  readonly #maintainedSince = new Map<number, { atMs: number; syncedAtMs: number }>();

  readonly #warnOfUnknown: (text: string, fields: object) => void;
  /** Shards whose cancel times have not been corrected since Redis's clock stepped. */
  readonly #steppedShards = new Set<number>();
  /** The offset of Redis's clock from our monotonic clock. */
  #clockOffsetMs: number | null = null;

  constructor(options: JobKeeperOptions) {
    this.#options = options;
    this.#warnOfUnknown = createThrottledWarning((text, fields) => options.log.warn(fields, text));
  }

  /** Makes one pass over all shards. Skips shards whose leases other workers hold. */
  async maintainShards(): Promise<void> {
    await this.#correctForClockStep();
    const shards = Array.from({ length: shardCount }, (_, shard) => shard);
    const passes = await Promise.allSettled(shards.map((shard) => this.#maintain(shard)));
    const firstFailure = passes.find((pass) => pass.status === 'rejected');
    if (firstFailure !== undefined) throw firstFailure.reason;
  }

  /** If Redis's clock was adjusted, the expiry times of leases are meaningless until live workers have renewed them. */
  async #correctForClockStep(): Promise<void> {
    const [seconds = 0, micros = 0] = (await callRedis(() => this.#options.redis.time())).map(Number);
    const offsetMs = seconds * 1_000 + micros / 1_000 - performance.now();
    if (Math.abs(offsetMs - (this.#clockOffsetMs ?? offsetMs)) > clockStepMs) {
      this.#maintainedSince.clear();
      for (let shard = 0; shard < shardCount; shard++) this.#steppedShards.add(shard);
    }
    this.#clockOffsetMs = offsetMs;
  }

  async #maintain(shard: number): Promise<void> {
    const { leases, batches, faults } = this.#options;
    const part = `maintaining the jobs of shard ${shard}`;
    try {
      if (!(await leases.take(shard))) {
        this.#maintainedSince.delete(shard);
        faults.forget(part);
        return;
      }
      const nowMs = performance.now();
      const since = this.#maintainedSince.get(shard) ?? { atMs: nowMs, syncedAtMs: -Infinity };
      this.#maintainedSince.set(shard, since);
      if (this.#steppedShards.has(shard)) {
        await limitCancelTimes(this.#options.redis, shard);
        this.#steppedShards.delete(shard);
      }
      const due = await findDueTasks(this.#options.redis, shard);
      // After a Redis outage, live workers need a moment to renew their leases.
      const haveWorkersRenewed = nowMs - since.atMs > liveness.job.deadMs;
      if (due.has('recover') && haveWorkersRenewed) await this.#requeueLost(shard);
      if (due.has('recoverSlices') && haveWorkersRenewed) await batches.recover(shard);
      const tasks: Promise<void>[] = [];
      if (due.has('cancel')) tasks.push(this.#cancelOverdue(shard));
      if (due.has('expire')) tasks.push(this.#expire(shard));
      if (due.has('queueHooks')) tasks.push(this.#queueHooks(shard));
      if (due.has('delete')) tasks.push(this.#deleteOld(shard));
      if (due.has('wakeBatches')) tasks.push(batches.wake(shard));
      if (due.has('queueBatchHooks')) tasks.push(batches.queueHooks(shard));
      if (due.has('deleteBatches')) tasks.push(batches.deleteEnded(shard));
      if (nowMs - since.syncedAtMs > syncIntervalMs) {
        const synced = Promise.all([this.#sync(shard), batches.sync(shard)]).then(() => {
          since.syncedAtMs = nowMs;
        });
        tasks.push(synced);
      }
      // A failed task is retried in the next pass, and does not keep the others from running.
      const ended = await Promise.allSettled(tasks);
      const firstFailure = ended.find((task) => task.status === 'rejected');
      if (firstFailure === undefined) faults.clear(part);
      else faults.note(part, firstFailure.reason);
    } catch (error) {
      this.#maintainedSince.delete(shard);
      throw error;
    }
  }

  async #expire(shard: number): Promise<void> {
    const { redis, turns } = this.#options;
    for (let executions = 0; executions < maxExecutions; executions++) {
      const { isMore, expired } = await expireJobs(redis, shard);
      await Promise.all(
        expired.map(({ accountId, queue, model }) => turns.drop({ queue, model }, accountId)),
      );
      if (!isMore) return;
    }
  }

  async #cancelOverdue(shard: number): Promise<void> {
    const { redis, turns, log } = this.#options;
    for (let executions = 0; executions < maxExecutions; executions++) {
      const { isMore, ended, running } = await cancelOverdueJobs(redis, shard);
      await Promise.all(ended.map(({ accountId, queue, model }) => turns.drop({ queue, model }, accountId)));
      for (const { workerId, jobId } of running) {
        // A worker that misses the message finds the cancellation in the record at its next heartbeat.
        sendControl(redis, workerId, { action: 'cancel-job', jobId }).catch((error: unknown) => {
          log.debug({ jobId, err: error }, 'worker message not delivered');
        });
      }
      if (!isMore) return;
    }
  }

  async #requeueLost(shard: number): Promise<void> {
    const { redis, turns, log } = this.#options;
    for (let executions = 0; executions < maxExecutions; executions++) {
      const { requeued, ended } = await recoverLostJobs(redis, shard);
      if (requeued.length + ended === 0) return;
      log.warn({ shard, again: requeued.length, ended }, 'jobs of dead workers requeued');
      await Promise.all(
        requeued.map(({ accountId, queue, model, weight }) => turns.add({ queue, model }, accountId, weight)),
      );
    }
  }

  async #deleteOld(shard: number): Promise<void> {
    for (let executions = 0; executions < maxExecutions; executions++) {
      if (!(await deleteEndedJobs(this.#options.redis, shard))) return;
    }
  }

  async #queueHooks(shard: number): Promise<void> {
    const { redis, queueHook } = this.#options;
    for (let executions = 0; executions < maxExecutions; executions++) {
      const due = await findDueHooks(redis, shard);
      if (due.length === 0) return;
      const queued = await Promise.allSettled(
        due.map(async (hook) => {
          await queueHook(hook);
          await markHookQueued(redis, hook);
        }),
      );
      const firstFailure = queued.find((one) => one.status === 'rejected');
      if (firstFailure === undefined) continue;
      throw firstFailure.reason;
    }
  }

  async #sync(shard: number): Promise<void> {
    const { redis, turns, knowsModel } = this.#options;
    for await (const lists of listWaitingLists(redis, shard)) {
      const unknown = lists.filter((line) => !knowsModel(line));
      if (unknown.length > 0) this.#warnOfJobs(unknown);
      await Promise.all(
        lists.map(({ accountId, queue, model, weight, waiting }) =>
          turns.sync({ queue, model }, accountId, weight, waiting),
        ),
      );
    }
  }

  #warnOfJobs(lists: readonly (JobLine & { readonly waiting: number })[]): void {
    const models = new Map<string, number>();
    for (const { model, waiting } of lists) models.set(model, (models.get(model) ?? 0) + waiting);
    this.#warnOfUnknown(
      'jobs wait for a model that is not in the catalog of this worker; they run once a worker has it',
      { waiting: Object.fromEntries(models) },
    );
  }
}
