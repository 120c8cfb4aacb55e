import {
  deleteEndedBatches,
  findBatchHooks,
  markBatchHookQueued,
  recoverSlices,
  wakeBatches,
  type DueBatchHook,
  type WokenBatch,
} from './keep-batch-scripts.ts';
import { listWaitingBatches } from '../../shared/work/jobs/end-job-scripts.ts';
import type { JobTurns } from '../../shared/work/jobs/job-turns-store.ts';
import type { RedisClient } from '../../shared/platform/redis/redis-client.ts';
import type { Logger } from '../../shared/platform/runtime/logger.ts';
import { sendControl } from '../../shared/work/replies/worker-control.ts';

/** Maximum number of script executions per shard and pass. */
const maxExecutions = 16;

export interface BatchKeeperOptions {
  readonly redis: RedisClient;
  readonly turns: Pick<JobTurns, 'add' | 'sync'>;
  /** Adds a batch's webhook to its queue. Idempotent. */
  readonly queueHook: (hook: DueBatchHook) => Promise<void>;
  readonly log: Logger;
}

/**
 * Maintains the batches of a shard: lets others take the slices of dead workers, ends pauses and windows, queues
 * webhooks, and deletes old records.
 */
export class BatchKeeper {
  readonly #options: BatchKeeperOptions;

  constructor(options: BatchKeeperOptions) {
    this.#options = options;
  }

  async recover(shard: number): Promise<void> {
    for (let executions = 0; executions < maxExecutions; executions++) {
      const woken = await recoverSlices(this.#options.redis, shard);
      if (woken.length === 0) return;
      this.#options.log.warn({ shard, slices: woken.length }, 'lines of batches taken from dead workers');
      await this.#announce(woken);
    }
  }

  async wake(shard: number): Promise<void> {
    for (let executions = 0; executions < maxExecutions; executions++) {
      const woken = await wakeBatches(this.#options.redis, shard);
      if (woken.length === 0) return;
      await this.#announce(woken);
    }
  }

  async queueHooks(shard: number): Promise<void> {
    const { redis, queueHook } = this.#options;
    for (let executions = 0; executions < maxExecutions; executions++) {
      const due = await findBatchHooks(redis, shard);
      if (due.length === 0) return;
      for (const hook of due) {
        await queueHook(hook);
        await markBatchHookQueued(redis, hook);
      }
    }
  }

  async deleteEnded(shard: number): Promise<void> {
    for (let executions = 0; executions < maxExecutions; executions++) {
      if (!(await deleteEndedBatches(this.#options.redis, shard))) return;
    }
  }

  /** Corrects the index across accounts. */
  async sync(shard: number): Promise<void> {
    const { redis, turns } = this.#options;
    for await (const lists of listWaitingBatches(redis, shard)) {
      await Promise.all(
        lists.map(({ accountId, queue, model, weight, waiting }) =>
          turns.sync({ queue, model }, accountId, weight, waiting),
        ),
      );
    }
  }

  async #announce(woken: readonly WokenBatch[]): Promise<void> {
    const { redis, turns } = this.#options;
    await Promise.all(
      woken.map(async ({ accountId, queue, model, weight, workerIds }) => {
        await turns.add({ queue, model }, accountId, weight);
        await Promise.all(workerIds.map((id) => sendControl(redis, id, { action: 'check-batches' })));
      }),
    );
  }
}
