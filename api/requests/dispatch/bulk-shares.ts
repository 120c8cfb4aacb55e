import { AppError } from '../../../shared/contract/errors.ts';
import { FairBudget } from '../../../shared/fairness/fair-budget.ts';
import type { AdmittedRequest } from '../../../shared/money/admitted-request.ts';
import type { QueueName } from '../../../shared/work/queue/job-kinds.ts';
import type { HeldCounts, HeldWork } from '../../../shared/work/queue/held-work.ts';
import type { WorkerRegistryStore } from '../../../shared/work/queue/worker-registry-store.ts';
import type { RedisClient } from '../../../shared/platform/redis/redis-client.ts';
import { redisChannels } from '../../../shared/platform/redis/redis-keys.ts';
import type { Logger } from '../../../shared/platform/runtime/logger.ts';
import { runInBackground } from '../../../shared/platform/runtime/run-in-background.ts';

/** Capacity before the first look-up of the workers, and while there are no workers. */
const initialCapacity = 64;
const refreshIntervalMs = 1_000;
/**
 * Maximum waiting requests per account and queue. Waiting requests stay in this process's memory. The memory budget for
 * request bodies limits that of large ones.
 */
const maxWaitingPerAccount = 10_000;

/** Timers can fire slightly early, so a wait that ends this close to the deadline is treated as a missed deadline. */
const timerSlackMs = 5;

interface BulkQueue {
  readonly budget: FairBudget;
  /** Resolves after the first look-up of the workers. New entries wait for it. */
  readonly firstLookUp: Promise<void>;
  isLookedUp: boolean;
  /** Accounts that have requests waiting, by id. */
  readonly accounts: Map<string, AccountQueue>;
  readonly waiting: Set<WaitingEntry>;
}

interface WaitingEntry {
  readonly model: string;
  readonly sinceMs: number;
  readonly countRequests: () => number;
}

/** A request or batch that enters. */
export interface EnteringWork extends Pick<AdmittedRequest, 'accountId' | 'deadlineAtMs' | 'model'> {
  /** How many requests it has now; one by default. */
  readonly countRequests?: () => number;
}

interface AccountQueue {
  entered: number;
  /** Number of requests that no longer wait, because they were granted a share or cancelled. */
  doneWaiting: number;
}

/** A request or batch that waits for a share of the workers' bulk capacity. */
export interface BulkEntry {
  /** Position among the requests waiting here; 1 is next. */
  position(): number;
  /**
   * Resolves when the request may be dispatched.
   * @throws AppError `queue_full`, `deadline_exceeded`; the signal's reason
   */
  readonly granted: Promise<void>;
}

type Registry = Pick<WorkerRegistryStore, 'sumLoads' | 'beatApi' | 'leaveApi'>;

/**
 * Limits how much work this process dispatches to the workers for accounts with a lot of work in flight. The workers'
 * bulk capacity is the number of bulk jobs that they can run. It is split evenly among the api processes. Within a
 * process, an account gets at most half of the capacity that other accounts do not hold. Further requests wait here,
 * and accounts take turns.
 */
export class BulkShares {
  readonly #redis: RedisClient;
  readonly #registry: Registry;
  readonly #apiId: string;
  #isReported = false;
  readonly #log: Logger;
  readonly #queues = new Map<QueueName, BulkQueue>();
  readonly #timer: NodeJS.Timeout;

  constructor(redis: RedisClient, registry: Registry, apiId: string, log: Logger) {
    this.#redis = redis;
    this.#apiId = apiId;
    this.#registry = registry;
    this.#log = log;
    this.#timer = setInterval(() => this.#refreshAll(), refreshIntervalMs);
    this.#timer.unref();
  }

  /** @param ended aborted once the request has ended for any reason; its share is then released */
  enter(
    name: QueueName,
    { accountId, deadlineAtMs, model, countRequests = () => 1 }: EnteringWork,
    ended: AbortSignal,
  ): BulkEntry {
    const queue = this.#queueOf(name);
    const account = queue.accounts.get(accountId) ?? { entered: 0, doneWaiting: 0 };
    queue.accounts.set(accountId, account);
    account.entered += 1;
    const ticket = account.entered;
    const entry = { model, sinceMs: performance.now(), countRequests };
    queue.waiting.add(entry);
    return {
      // Accounts take turns, so for each of this account's requests ahead, one request of every other waiting account
      // also goes first.
      position: () => Math.max(1, ticket - account.doneWaiting) * Math.max(1, queue.budget.waitingHolders),
      granted: this.#acquire(queue, accountId, deadlineAtMs, ended).finally(() => {
        queue.waiting.delete(entry);
        account.doneWaiting += 1;
        if (account.doneWaiting === account.entered) queue.accounts.delete(accountId);
      }),
    };
  }

  /** Takes a share that is available now, without waiting. @returns the function that releases it; null if there is none */
  tryEnter(name: QueueName, accountId: string): (() => void) | null {
    const { budget, accounts, isLookedUp } = this.#queueOf(name);
    // The account's waiting requests go first.
    if (!isLookedUp || accounts.has(accountId)) return null;
    const share = budget.tryAcquire(accountId, 1);
    return share === null ? null : () => share.release();
  }

  close(): void {
    clearInterval(this.#timer);
  }

  async #acquire(
    { budget, firstLookUp }: BulkQueue,
    accountId: string,
    deadlineAtMs: number,
    ended: AbortSignal,
  ): Promise<void> {
    await firstLookUp;
    const share = await budget.acquire(accountId, 1, {
      signal: ended,
      waitMs: Math.max(0, deadlineAtMs - Date.now()),
      createError: () =>
        new AppError(Date.now() < deadlineAtMs - timerSlackMs ? 'queue_full' : 'deadline_exceeded'),
    });
    if (ended.aborted) share.release();
    else ended.addEventListener('abort', () => share.release(), { once: true });
    ended.throwIfAborted();
  }

  #queueOf(name: QueueName): BulkQueue {
    const existing = this.#queues.get(name);
    if (existing !== undefined) return existing;
    const budget = new FairBudget({ capacity: initialCapacity, maxWaitingPerHolder: maxWaitingPerAccount });
    const queue: BulkQueue = {
      budget,
      firstLookUp: this.#refresh(name, budget).then(() => {
        queue.isLookedUp = true;
      }),
      isLookedUp: false,
      accounts: new Map<string, AccountQueue>(),
      waiting: new Set(),
    };
    this.#queues.set(name, queue);
    return queue;
  }

  #refreshAll(): void {
    runInBackground(this.#report(), 'reporting what waits', this.#log);
    for (const [name, { budget }] of this.#queues) {
      if (budget.held === 0 && budget.waiting === 0) continue;
      runInBackground(this.#refresh(name, budget), 'worker look-up', this.#log);
    }
  }

  /** Reports what waits here, for the operator and for programs that start workers. Never rejects. */
  async #report(): Promise<void> {
    const waiting = new Map(
      Array.from(this.#queues, ([name, queue]) => [name, countWaiting(queue)] as const).filter(
        ([, { size }]) => size > 0,
      ),
    );
    if (waiting.size === 0 && !this.#isReported) return;
    try {
      if (waiting.size > 0) await this.#registry.beatApi(this.#apiId, waiting);
      else await this.#registry.leaveApi(this.#apiId);
      this.#isReported = waiting.size > 0;
    } catch (error) {
      this.#log.debug({ err: error }, 'reporting what waits failed');
    }
  }

  /** Never rejects. If the look-up fails, the capacity stays as it is. */
  async #refresh(name: QueueName, budget: FairBudget): Promise<void> {
    try {
      const [{ bulkRuns }, apis] = await Promise.all([
        this.#registry.sumLoads(name),
        this.#redis.spublish(redisChannels.apis, ''),
      ]);
      if (bulkRuns > 0) budget.resize(Math.max(1, Math.floor(bulkRuns / Math.max(1, apis as number))));
    } catch (error) {
      this.#log.debug({ queue: name, err: error }, 'bulk capacity look-up failed');
    }
  }
}

function countWaiting({ waiting }: BulkQueue): HeldWork {
  const nowMs = performance.now();
  const byModel = new Map<string, { interactive: HeldCounts }>();
  for (const { model, sinceMs, countRequests } of waiting) {
    const before = byModel.get(model)?.interactive ?? { running: 0, waiting: 0, oldestMs: 0 };
    const oldestMs = Math.max(before.oldestMs, nowMs - sinceMs);
    byModel.set(model, { interactive: { running: 0, waiting: before.waiting + countRequests(), oldestMs } });
  }
  return byModel;
}
