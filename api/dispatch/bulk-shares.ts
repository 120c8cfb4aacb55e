import { AppError } from '../../shared/contract/errors.ts';
import { FairBudget } from '../../shared/fairness/fair-budget.ts';
import type { AdmittedRequest, QueueName } from '../../shared/queue/job-kinds.ts';
import type { WorkerRegistryStore } from '../../shared/queue/worker-registry-store.ts';
import type { RedisClient } from '../../shared/redis/redis-client.ts';
import { redisChannels } from '../../shared/redis/redis-keys.ts';
import type { Logger } from '../../shared/runtime/logger.ts';
import { runInBackground } from '../../shared/runtime/run-in-background.ts';

/** Until the workers have been looked up, and while there are none. */
const firstCapacity = 64;
const lookMs = 1_000;
/** Of one account and queue. They lie in this process's memory, and a large one as its stored body. */
const maxWaitingPerAccount = 10_000;

/** Timers may be early by a little. */
const timerSlackMs = 5;

interface BulkQueue {
  readonly budget: FairBudget;
  /** The first look at the workers; those that enter wait for it. */
  readonly known: Promise<void>;
  /** Of each account that waits. */
  readonly lines: Map<string, AccountLine>;
}

interface AccountLine {
  entered: number;
  /** How many wait no more, whether they were let in or left. */
  passed: number;
}

/** A request, or a batch, on its way to the workers' runs for bulk. */
export interface BulkEntry {
  /** Its place among those that wait here, 1 the next. */
  place(): number;
  /**
   * Resolves when it may go to the workers. @throws AppError `queue_full`, `deadline_exceeded`; the signal's reason
   */
  readonly granted: Promise<void>;
}

/**
 * What this process may have with the workers at once of work of accounts that have much under way. The workers' runs for
 * it are shared by the api processes, and each shares its part out among accounts: none has more than half of what the
 * others leave it, whatever its requests wait for. The rest waits here, and takes turns.
 */
export class BulkShares {
  readonly #redis: RedisClient;
  readonly #registry: Pick<WorkerRegistryStore, 'sumLoads'>;
  readonly #log: Logger;
  readonly #queues = new Map<QueueName, BulkQueue>();
  readonly #timer: NodeJS.Timeout;

  constructor(redis: RedisClient, registry: Pick<WorkerRegistryStore, 'sumLoads'>, log: Logger) {
    this.#redis = redis;
    this.#registry = registry;
    this.#log = log;
    this.#timer = setInterval(() => this.#lookAgain(), lookMs);
    this.#timer.unref();
  }

  /** @param ended aborted once the request has ended, however it went: then its share is free again */
  enter(
    name: QueueName,
    { accountId, deadlineAtMs }: Pick<AdmittedRequest, 'accountId' | 'deadlineAtMs'>,
    ended: AbortSignal,
  ): BulkEntry {
    const queue = this.#queueOf(name);
    const line = queue.lines.get(accountId) ?? { entered: 0, passed: 0 };
    queue.lines.set(accountId, line);
    line.entered += 1;
    const ticket = line.entered;
    return {
      // Accounts take turns: before its second, each of the others has one.
      place: () => Math.max(1, ticket - line.passed) * Math.max(1, queue.budget.waitingHolders),
      granted: this.#acquire(queue, accountId, deadlineAtMs, ended).finally(() => {
        line.passed += 1;
        if (line.passed === line.entered) queue.lines.delete(accountId);
      }),
    };
  }

  close(): void {
    clearInterval(this.#timer);
  }

  async #acquire(
    { budget, known }: BulkQueue,
    accountId: string,
    deadlineAtMs: number,
    ended: AbortSignal,
  ): Promise<void> {
    await known;
    const share = await budget.acquire(accountId, 1, {
      signal: ended,
      waitMs: Math.max(0, deadlineAtMs - Date.now()),
      refuse: () =>
        new AppError(Date.now() < deadlineAtMs - timerSlackMs ? 'queue_full' : 'deadline_exceeded'),
    });
    if (ended.aborted) share.release();
    else ended.addEventListener('abort', () => share.release(), { once: true });
    ended.throwIfAborted();
  }

  #queueOf(name: QueueName): BulkQueue {
    const known = this.#queues.get(name);
    if (known !== undefined) return known;
    const budget = new FairBudget({ capacity: firstCapacity, maxWaitingPerHolder: maxWaitingPerAccount });
    const queue = { budget, known: this.#look(name, budget), lines: new Map<string, AccountLine>() };
    this.#queues.set(name, queue);
    return queue;
  }

  #lookAgain(): void {
    for (const [name, { budget }] of this.#queues) {
      if (budget.held === 0 && budget.waiting === 0) continue;
      runInBackground(this.#look(name, budget), 'looking up the workers', this.#log);
    }
  }

  /** Never rejects: if the workers cannot be looked up, the capacity stays as it is. */
  async #look(name: QueueName, budget: FairBudget): Promise<void> {
    try {
      const [{ bulkRuns }, apis] = await Promise.all([
        this.#registry.sumLoads(name),
        this.#redis.spublish(redisChannels.apis, ''),
      ]);
      if (bulkRuns > 0) budget.resize(Math.max(1, Math.floor(bulkRuns / Math.max(1, apis as number))));
    } catch (error) {
      this.#log.debug({ queue: name, err: error }, 'the runs of the workers could not be looked up');
    }
  }
}
