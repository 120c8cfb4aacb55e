import { setImmediate as nextTurn, setTimeout as delay } from 'node:timers/promises';
import { createRecentEntries } from '../../shared/platform/runtime/recent-entries.ts';
import { AppError } from '../../shared/contract/errors.ts';
import { callRedis, type RedisClient } from '../../shared/platform/redis/redis-client.ts';
import { isContested } from './contested-script.ts';
import { callClasses, classesBefore, type CallClass } from '../../shared/work/queue/call-class.ts';
import {
  maxAccountsPerAcquire,
  nameCallLease,
  runAcquire,
  type AcquireResult,
  type CallName,
  type CallSlot,
} from './acquire-script.ts';
import type { CallOutcome, KeyCooldown } from './outcome-script.ts';
import type { CatalogRoute } from '../../shared/catalog/catalog-schema.ts';
import type { RouteCandidate } from '../../shared/routing/route-candidate.ts';
import { readCandidates, RouteStateStore } from '../../shared/routing/route-state-store.ts';
import { describePause } from './describe-pause.ts';
import type { Running } from '../../shared/platform/runtime/lifecycle.ts';
import type { Logger } from '../../shared/platform/runtime/logger.ts';
import { runInBackground } from '../../shared/platform/runtime/run-in-background.ts';
import { HeldSlots, outagePauseMs } from './held-slots.ts';
import { SlotHolder } from './slot-holder.ts';
import { WaitQueue, isWithinWaitLimits, queueNameOf, type SlotOptions } from './wait-queue.ts';
import { liveness } from '../../shared/platform/redis/liveness.ts';

/**
 * How often to poll for slots that other workers release, in milliseconds. A release in this process wakes the queues
 * immediately.
 */
const pollMs = { first: 10, max: 100 };
/**
 * The least recently used accounts are evicted. An evicted account counts as one that never had a slot, so its queue is
 * woken before others.
 */
const maxTrackedAccounts = 10_000;

export interface RouteLimiterOptions {
  /** The sorted sets of slots in the catalog, in which the slots of dead workers are freed. */
  readonly slotSets?: () => readonly string[];
  readonly leaseMs?: number;
}

/** Calls of one model and class that wait for a slot. */
export interface WaitingCalls {
  readonly model: string;
  readonly callClass: CallClass;
  readonly count: number;
  /** How long the first one has waited. */
  readonly oldestMs: number;
}

/**
 * Limits the calls to upstreams. Redis holds the state for all workers: slots, circuit breakers and cooldowns.
 * Calls wait here when all slots are taken, and accounts take turns.
 */
export class RouteLimiter implements Running {
  readonly #redis: RedisClient;
  readonly #log: Logger;
  readonly #queues = new Map<string, WaitQueue>();
  readonly #holder: SlotHolder;
  readonly #held: HeldSlots;
  readonly #leaseMs: number;
  #callCount = 0;
  /** The value of the grant counter when each account last got a slot. */
  readonly #grantedAt = createRecentEntries<string, number>(maxTrackedAccounts);
  #grants = 0;
  #isHandedBack = false;

  constructor(
    redis: RedisClient,
    workerId: string,
    log: Logger,
    { slotSets = () => [], leaseMs = liveness.callSlot.deadMs }: RouteLimiterOptions = {},
  ) {
    this.#redis = redis;
    this.#log = log;
    this.#leaseMs = leaseMs;
    this.#holder = new SlotHolder(
      { redis, workerId, leaseMs, slotSets, log },
      {
        onDead: () => this.#held.forgetAll(),
        restore: () => this.#held.renew(),
        onFreed: () => this.#wakeQueues(),
      },
    );
    this.#held = new HeldSlots(redis, log, leaseMs, this.#holder, () => this.#wakeQueues());
  }

  /**
   * Waits until one of the candidates may be called. Returns null if none becomes available within the wait limits.
   * Every acquired slot must be released.
   * @throws AppError `deadline_exceeded`; the signal's reason when it is aborted
   */
  async acquire(candidates: readonly RouteCandidate[], options: SlotOptions): Promise<CallSlot | null> {
    options.signal.throwIfAborted();
    const { callClass = 'interactive' } = options;
    // Later calls do not overtake waiting ones.
    if (
      !this.#queues.has(queueNameOf(candidates, callClass)) &&
      !this.#isBlockedByEarlierClass(candidates, callClass)
    ) {
      const accountIds = takeFirst(options.accountIds(), maxAccountsPerAcquire);
      const kept = mayReuseSlots(options) ? this.#takeKept(candidates, accountIds) : null;
      if (kept !== null) return kept;
      const result = await this.#tryAcquire(candidates, accountIds, callClass);
      if (result?.outcome === 'granted') return await this.#deliver(result.slot, candidates, options);
      // The result applies only to the accounts that were passed to Redis: the first few of those that were waiting at
      // that moment.
      const isForAll = [...options.accountIds()].every((id) => accountIds.includes(id));
      if (result?.outcome === 'paused' && isForAll && !isWithinWaitLimits(result, options.waitLimits, 0))
        return null;
      options.signal.throwIfAborted();
    }
    return await this.#waitInQueue(candidates, options);
  }

  /**
   * Reports that a probe has started to receive a response: its route is healthy, and other calls need not wait for it
   * to end.
   */
  confirm(slot: CallSlot): void {
    this.#held.confirmProbe(slot);
  }

  /** Whether the slot served an earlier call, so that Redis was not asked for it. */
  isKept(slot: CallSlot): boolean {
    return this.#held.isReused(slot);
  }

  /** Explains for operators why none of the routes may be called; null if the reason is gone, or Redis is away. */
  async explainPause(routes: readonly CatalogRoute[]): Promise<string | null> {
    try {
      return describePause(await readCandidates(new RouteStateStore(this.#redis), routes, Date.now()));
    } catch (error) {
      if (!(error instanceof AppError)) throw error;
      return null;
    }
  }

  /** Whether another account waits for the slot that this call holds. Returns false if Redis is unavailable. */
  async isContested(slot: CallSlot): Promise<boolean> {
    try {
      return await callRedis(() => isContested(this.#redis, slot));
    } catch (error) {
      if (!(error instanceof AppError)) throw error;
      return false;
    }
  }

  /**
   * Releases the slot after the call has ended, successfully or not. Never rejects, and need not be awaited.
   * @param accountIds the accounts whose requests the call served
   */
  release(
    slot: CallSlot,
    callOutcome: CallOutcome,
    cooldown: KeyCooldown | null = null,
    accountIds: readonly string[] = [slot.accountId],
  ): void {
    this.#held.release(slot, { outcome: callOutcome, cooldown, accountIds }, this.#queues.size === 0);
  }

  /**
   * Counts a server failure of a call whose slot was released before. Never rejects, and need not be awaited.
   * @param unlessServedForMs the failure does not count if the route served a call within this time; null: it counts
   */
  reportFailure(slot: CallSlot, accountIds: readonly string[], unlessServedForMs: number | null): void {
    this.#held.reportFailure(slot, { outcome: 'bad', cooldown: null, accountIds, unlessServedForMs });
  }

  /** Takes a slot that an earlier call of the account left. Redis is not asked, so its turn is recorded here alone. */
  #takeKept(candidates: readonly RouteCandidate[], accountIds: readonly string[]): CallSlot | null {
    const [candidate, accountId] = [candidates[0], accountIds[0]];
    if (candidate === undefined || accountId === undefined) return null;
    const slot = this.#held.takeKept(candidate, accountId);
    if (slot !== null) this.#grantedAt.set(accountId, (this.#grants += 1));
    return slot;
  }

  /** The calls that wait for a slot, by model and class. */
  listWaiting(): WaitingCalls[] {
    const found = new Map<string, WaitingCalls>();
    const nowMs = performance.now();
    for (const queue of this.#queues.values()) {
      const { callClass } = queue;
      for (const { model = '', sinceMs } of queue.calls()) {
        const name = `${callClass} ${model}`;
        const { count, oldestMs } = found.get(name) ?? { count: 0, oldestMs: 0 };
        const oldest = Math.max(oldestMs, nowMs - sinceMs);
        found.set(name, { model, callClass, count: count + 1, oldestMs: oldest });
      }
    }
    return [...found.values()];
  }

  /**
   * Fails the waiting calls of a class for these models.
   * @returns how many
   */
  failWaiting(callClass: CallClass, isOf: (model: string) => boolean, error: unknown): number {
    let count = 0;
    for (const queue of this.#queues.values())
      if (queue.callClass === callClass) count += queue.failThose(isOf, error);
    return count;
  }

  async stop(): Promise<void> {
    await this.#held.stop();
    await this.#holder.stop();
  }

  /**
   * Releases the slots of running calls when the process is about to exit; otherwise they stay taken until their leases
   * expire. Waiting and new calls get no slot before the exit: their requests run again in other workers.
   */
  async handBack(): Promise<void> {
    this.#isHandedBack = true;
    this.#held.releaseAll();
    // Once the ping returns, Redis has replied to all earlier commands.
    await callRedis(() => this.#redis.ping());
    await nextTurn();
    // Includes slots that were granted in the meantime.
    await this.stop();
  }

  /**
   * Wakes the queues after a slot may have become free. The queue that requests it first usually gets it. The models of
   * an upstream have separate queues, so queues are woken in the order of their accounts' turns: otherwise a busy model
   * would get every slot.
   */
  #wakeQueues(): void {
    const queues = Array.from(this.#queues.values(), (queue) => ({
      queue,
      rank: callClasses.indexOf(queue.callClass),
      turn:
        queue.callClass === 'interactive' ? (this.#grantedAt.get(queue.nextAccountIds(1)[0] ?? '') ?? 0) : 0,
    }));
    for (const { queue } of queues.sort((a, b) => a.rank - b.rank || a.turn - b.turn)) queue.wake();
  }

  /** Whether calls of an earlier class are waiting for the same candidates in this process. */
  #isBlockedByEarlierClass(candidates: readonly RouteCandidate[], callClass: CallClass): boolean {
    return classesBefore(callClass).some((earlier) => this.#queues.has(queueNameOf(candidates, earlier)));
  }

  /** Returns null if Redis is unavailable; the caller then retries. */
  async #tryAcquire(
    candidates: readonly RouteCandidate[],
    accountIds: readonly string[],
    callClass: CallClass,
  ): Promise<AcquireResult | null> {
    if (this.#isHandedBack) return null;
    const calls: CallName[] = [];
    const run = (): Promise<AcquireResult> => {
      const call = { holder: this.#holder.name, callNumber: (this.#callCount += 1), callClass };
      calls.push(call);
      return runAcquire(this.#redis, candidates, accountIds, call, this.#leaseMs);
    };
    try {
      if (!this.#holder.isAlive) await this.#holder.report();
      const result = await callRedis(run);
      if (result.outcome !== 'unreported') return result;
      // Redis has lost its data, or this process stalled in the meantime.
      await this.#holder.report();
      return await callRedis(run);
    } catch (error) {
      if (!(error instanceof AppError)) throw error;
      this.#log.debug({ err: error }, 'waiting for Redis');
      this.#held.releaseUnknown(
        candidates,
        accountIds.flatMap((accountId) => calls.map((call) => nameCallLease(accountId, call))),
      );
      return null;
    }
  }

  async #deliver(
    slot: CallSlot,
    candidates: readonly RouteCandidate[],
    options: SlotOptions,
  ): Promise<CallSlot | null> {
    const { signal } = options;
    if (!(await this.#isStillHeld(slot))) return await this.acquire(candidates, options);
    this.#held.add(slot, mayReuseSlots(options));
    this.#grantedAt.set(slot.accountId, (this.#grants += 1));
    if (!signal.aborted && !this.#isHandedBack) return slot;
    this.release(slot, 'none');
    signal.throwIfAborted();
    // The slot was requested before `handBack`. Never resolve, because the exit would interrupt any call that starts
    // now.
    return await new Promise<never>(() => undefined);
  }

  /** Whether a slot just granted was not freed before its grant arrived, because this process seemed dead. */
  async #isStillHeld(slot: CallSlot): Promise<boolean> {
    // If the report fails, the next attempt to acquire a slot waits for Redis.
    if (!this.#holder.isAlive) await this.#holder.report().catch(() => undefined);
    if (this.#holder.isAlive && slot.holder === this.#holder.name) return true;
    this.#held.releaseUnknown([slot.candidate], [slot.lease]);
    return false;
  }

  async #waitInQueue(candidates: readonly RouteCandidate[], options: SlotOptions): Promise<CallSlot | null> {
    const { callClass = 'interactive' } = options;
    const name = queueNameOf(candidates, callClass);
    let queue = this.#queues.get(name);
    const isFirst = queue === undefined;
    queue ??= new WaitQueue(callClass);
    this.#queues.set(name, queue);
    const waiting = queue.wait(candidates, options);
    // The kept slots may be what these calls wait for.
    this.#held.releaseKept();
    if (isFirst) runInBackground(this.#serve(name, queue), 'requesting slots', this.#log);
    const slot = await waiting;
    return slot === null ? null : await this.#deliver(slot, candidates, options);
  }

  /** Requests slots for the accounts next in turn until the queue is empty. */
  async #serve(name: string, queue: WaitQueue): Promise<void> {
    let pauseMs = pollMs.first;
    // Accounts at the front whose candidates are all paused must not block the accounts behind them.
    let skippedCount = 0;
    try {
      for (
        let candidates = queue.nextCandidates();
        candidates !== null;
        candidates = queue.nextCandidates()
      ) {
        const woken = queue.woken();
        const accountIds = queue.nextAccountIds(maxAccountsPerAcquire, skippedCount);
        const result: AcquireResult | null = this.#isBlockedByEarlierClass(candidates, queue.callClass)
          ? { outcome: 'busy' }
          : await this.#tryAcquire(candidates, accountIds, queue.callClass);
        const isPaused = result?.outcome === 'paused';
        skippedCount =
          isPaused && accountIds.length === maxAccountsPerAcquire ? skippedCount + maxAccountsPerAcquire : 0;
        if (result?.outcome === 'granted') {
          // Release the slot if the account's calls no longer wait.
          if (!queue.serve(result.slot)) this.release(result.slot, 'none');
          pauseMs = pollMs.first;
          continue;
        }
        if (result?.outcome === 'paused') queue.pause(result, accountIds);
        if (result?.outcome === 'busy') queue.unpause();
        const waitMs = result === null ? outagePauseMs : pauseMs;
        pauseMs = Math.min(pollMs.max, pauseMs * 2);
        const paused = delay(waitMs * (0.5 + Math.random() / 2));
        // While Redis is unavailable, calls that end free no slot.
        await (result === null ? paused : Promise.race([woken, paused]));
      }
    } catch (error) {
      queue.failAll(error);
    } finally {
      this.#queues.delete(name);
    }
  }
}

/** Only Redis knows whether calls of an earlier class wait, so other calls than interactive ones always ask it. */
const mayReuseSlots = ({ takesKeptSlots = false, callClass = 'interactive' }: SlotOptions): boolean =>
  takesKeptSlots && callClass === 'interactive';

function takeFirst<T>(all: Iterable<T>, maxCount: number): T[] {
  const first: T[] = [];
  for (const one of all) if (first.push(one) === maxCount) break;
  return first;
}
