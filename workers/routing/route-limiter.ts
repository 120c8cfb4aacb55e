import { setImmediate as nextTurn, setTimeout as delay } from 'node:timers/promises';
import { LRUCache } from 'lru-cache';
import { AppError } from '../../shared/contract/errors.ts';
import { callRedis, type RedisClient } from '../../shared/redis/redis-client.ts';
import { retryThroughOutage } from '../../shared/redis/retry-through-outage.ts';
import { isContested } from '../../shared/routing/contested-script.ts';
import {
  maxAccountsPerAcquire,
  runAcquire,
  type AcquireResult,
  type CallSlot,
} from '../../shared/routing/acquire-script.ts';
import {
  confirmProbe,
  runOutcome,
  type CallOutcome,
  type KeyCooldown,
} from '../../shared/routing/outcome-script.ts';
import { runRenewal } from '../../shared/routing/renew-script.ts';
import type { RouteCandidate } from '../../shared/routing/route-candidate.ts';
import { nameLease, slotsOf } from '../../shared/routing/candidate-keys.ts';
import type { Running } from '../../shared/runtime/lifecycle.ts';
import type { Logger } from '../../shared/runtime/logger.ts';
import { runInBackground } from '../../shared/runtime/run-in-background.ts';
import { KeptSlots, type SlotUse } from './kept-slots.ts';
import { closedMessage, logOutcome } from './log-outcome.ts';
import { PendingSuccesses } from './pending-successes.ts';
import {
  WaitQueue,
  isBackgroundQueue,
  isWithinWaitLimits,
  queueNameOf,
  priorityQueueNameOf,
  type AcquireOptions,
} from './wait-queue.ts';

/**
 * How often to poll for slots that other workers release, in milliseconds. A release in this process wakes the queues
 * immediately.
 */
const pollMs = { first: 10, max: 100 };
/** The slots of a dead worker become free after this time. */
const defaultLeaseMs = 30_000;
const outagePauseMs = 250;
/**
 * The least recently used accounts are evicted. An evicted account counts as one that never had a slot, so its queue is
 * woken before others.
 */
const maxTrackedAccounts = 10_000;

/**
 * Limits the calls to upstreams. Redis holds the state for all workers: slots, circuit breakers and cooldowns.
 * Calls wait here when all slots are taken, and accounts take turns.
 */
export class RouteLimiter implements Running {
  readonly #redis: RedisClient;
  readonly #workerId: string;
  readonly #log: Logger;
  readonly #queues = new Map<string, WaitQueue>();
  readonly #heldSlots = new Map<CallSlot, SlotUse>();
  readonly #kept = new KeptSlots(({ slot }) => this.#end(slot, 'none', null, []));
  readonly #successes = new PendingSuccesses((slot, calls) => this.#reportSuccesses(slot, calls));
  /** Probes already reported as successful. */
  readonly #confirmedProbes = new WeakSet<CallSlot>();
  readonly #inFlight = new Set<Promise<unknown>>();
  readonly #leaseMs: number;
  readonly #renewalTimer: NodeJS.Timeout;
  #leaseCount = 0;
  /** The value of the grant counter when each account last got a slot. */
  readonly #grantedAt = new LRUCache<string, number>({ max: maxTrackedAccounts });
  #grants = 0;
  #isStopping = false;
  #isHandedBack = false;

  constructor(redis: RedisClient, workerId: string, log: Logger, leaseMs = defaultLeaseMs) {
    this.#redis = redis;
    this.#workerId = workerId;
    this.#log = log;
    this.#leaseMs = leaseMs;
    this.#renewalTimer = setInterval(
      () => runInBackground(this.#renew(), 'renewing leases', log),
      leaseMs / 3,
    );
    this.#renewalTimer.unref();
  }

  /**
   * Waits until one of the candidates may be called. Returns null if none becomes available within the wait limits.
   * Every acquired slot must be released.
   * @throws AppError `deadline_exceeded`; the signal's reason when it is aborted
   */
  async acquire(candidates: readonly RouteCandidate[], options: AcquireOptions): Promise<CallSlot | null> {
    options.signal.throwIfAborted();
    const { isBackground = false } = options;
    const name = queueNameOf(candidates, isBackground);
    // Later calls do not overtake waiting ones.
    if (!this.#queues.has(name) && !this.#isBlockedByPriorityQueue(name)) {
      const accountIds = takeFirst(options.accountIds(), maxAccountsPerAcquire);
      const kept = options.takesKeptSlots === true ? this.#takeKept(candidates, accountIds) : null;
      if (kept !== null) return kept;
      const result = await this.#tryAcquire(candidates, accountIds, isBackground);
      if (result?.outcome === 'granted') return await this.#deliver(result.slot, options);
      // The result applies only to the accounts that were passed to Redis: the first few of those that were waiting at
      // that moment.
      const isForAll = [...options.accountIds()].every((id) => accountIds.includes(id));
      if (result?.outcome === 'paused' && isForAll && !isWithinWaitLimits(result, options.waitLimits, 0))
        return null;
      options.signal.throwIfAborted();
    }
    return await this.#waitInQueue(name, candidates, options);
  }

  /**
   * Reports that a probe has started to receive a response: its route is healthy, and other calls need not wait for it
   * to end.
   */
  confirm(slot: CallSlot): void {
    if (!slot.isProbe || this.#confirmedProbes.has(slot)) return;
    this.#confirmedProbes.add(slot);
    const fields = { route: slot.candidate.route.id, upstream: slot.candidate.route.upstream.name };
    confirmProbe(this.#redis, slot).then(
      (isClosed) => {
        if (isClosed) this.#log.info(fields, closedMessage);
        this.#wakeQueues();
      },
      (error: unknown) => this.#log.debug({ ...fields, err: error }, 'confirming a probe failed'),
    );
  }

  /** Whether the slot served an earlier call, so that Redis was not asked for it. */
  isKept(slot: CallSlot): boolean {
    return this.#heldSlots.get(slot)?.isReused === true;
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
    const use = this.#heldSlots.get(slot) ?? createUse(slot, false);
    // What is known about the targets may have changed.
    if ((callOutcome !== 'ok' && callOutcome !== 'none') || cooldown !== null) this.#kept.releaseAll();
    const isForOne = accountIds.length === 1 && accountIds[0] === slot.accountId;
    const isKept = callOutcome === 'ok' && isForOne && !this.#isStopping && this.#queues.size === 0;
    if (isKept && this.#kept.mayKeep(use)) {
      this.#successes.add(slot);
      this.#kept.keep(use);
    } else {
      this.#end(slot, callOutcome, cooldown, accountIds);
    }
  }

  /** Takes a slot that an earlier call of the account left. Redis is not asked, so its turn is recorded here alone. */
  #takeKept(candidates: readonly RouteCandidate[], accountIds: readonly string[]): CallSlot | null {
    const [candidate, accountId] = [candidates[0], accountIds[0]];
    if (candidate === undefined || accountId === undefined || this.#isStopping) return null;
    const use = this.#kept.take(candidate, accountId);
    if (use === null) return null;
    this.#grantedAt.set(accountId, (this.#grants += 1));
    return use.slot;
  }

  /** Releases the slot in Redis, with the outcome of its last call. */
  #end(
    slot: CallSlot,
    callOutcome: CallOutcome,
    cooldown: KeyCooldown | null,
    accountIds: readonly string[],
  ): void {
    this.#heldSlots.delete(slot);
    // Redis must count earlier successes before a failure.
    const earlier = callOutcome === 'none' ? 0 : this.#successes.take(slot);
    if (callOutcome === 'ok') {
      this.#track(this.#report(slot, callOutcome, cooldown, accountIds, earlier + 1));
      return;
    }
    if (earlier > 0) this.#reportSuccesses(slot, earlier);
    this.#track(this.#report(slot, callOutcome, cooldown, accountIds));
  }

  /** Reports successful calls without releasing a slot. */
  #reportSuccesses(slot: CallSlot, calls: number): void {
    this.#track(this.#report({ ...slot, lease: '' }, 'ok', null, [slot.accountId], calls));
  }

  async stop(): Promise<void> {
    clearInterval(this.#renewalTimer);
    this.#isStopping = true;
    this.#kept.releaseAll();
    this.#successes.flush();
    await Promise.all(this.#inFlight);
  }

  /**
   * Releases the slots of running calls when the process is about to exit; otherwise they stay taken until their leases
   * expire. Waiting and new calls get no slot before the exit: their requests run again in other workers.
   */
  async handBack(): Promise<void> {
    clearInterval(this.#renewalTimer);
    this.#isStopping = true;
    this.#isHandedBack = true;
    this.#kept.releaseAll();
    this.#successes.flush();
    for (const slot of this.#heldSlots.keys()) this.release(slot, 'none');
    // Once the ping returns, Redis has replied to all earlier commands.
    await callRedis(() => this.#redis.ping());
    await nextTurn();
    await Promise.all(this.#inFlight);
  }

  async #report(
    slot: CallSlot,
    callOutcome: CallOutcome,
    cooldown: KeyCooldown | null,
    accountIds: readonly string[],
    calls = 1,
  ): Promise<void> {
    try {
      const outcome = await this.#retryThroughOutage(() =>
        runOutcome(this.#redis, slot, callOutcome, cooldown, accountIds, calls),
      );
      logOutcome(this.#log, slot.candidate, outcome, cooldown, accountIds);
    } catch (error) {
      // Slots are leases and expire if they are not released.
      this.#log.debug(
        { route: slot.candidate.route.id, err: error },
        'reporting the outcome of a call failed',
      );
    }
    this.#wakeQueues();
  }

  /**
   * Wakes the queues after a slot may have become free. The queue that requests it first usually gets it. The models of
   * an upstream have separate queues, so queues are woken in the order of their accounts' turns: otherwise a busy model
   * would get every slot.
   */
  #wakeQueues(): void {
    const turnOf = (name: string, queue: WaitQueue): number =>
      isBackgroundQueue(name) ? Infinity : (this.#grantedAt.get(queue.nextAccountIds(1)[0] ?? '') ?? 0);
    const queues = Array.from(this.#queues, ([name, queue]) => ({ queue, turn: turnOf(name, queue) }));
    for (const { queue } of queues.sort((a, b) => compareTurns(a.turn, b.turn))) queue.wake();
  }

  /** Whether calls with priority over this queue are waiting for the same candidates in this process. */
  #isBlockedByPriorityQueue(name: string): boolean {
    const priorityQueueName = priorityQueueNameOf(name);
    return priorityQueueName !== null && this.#queues.has(priorityQueueName);
  }

  /** Returns null if Redis is unavailable; the caller then retries. */
  async #tryAcquire(
    candidates: readonly RouteCandidate[],
    accountIds: readonly string[],
    isBackground: boolean,
  ): Promise<AcquireResult | null> {
    if (this.#isHandedBack) return null;
    const lease = `${this.#workerId}:${(this.#leaseCount += 1)}`;
    try {
      return await callRedis(() =>
        runAcquire(this.#redis, candidates, accountIds, lease, this.#leaseMs, isBackground),
      );
    } catch (error) {
      if (!(error instanceof AppError)) throw error;
      this.#log.debug({ err: error }, 'waiting for Redis');
      this.#releaseLeases(
        candidates,
        accountIds.map((accountId) => nameLease(accountId, lease)),
      );
      return null;
    }
  }

  /** Releases slots whose grant may have been lost: Redis may hold them under a lease unknown to this process. */
  #releaseLeases(candidates: readonly RouteCandidate[], leases: readonly string[]): void {
    const keys = [...new Set(candidates.flatMap((candidate) => slotsOf(candidate).keys))];
    const removing = this.#retryThroughOutage(() =>
      Promise.all(keys.map((key) => this.#redis.zrem(key, ...leases))),
    );
    this.#track(
      removing.catch((error: unknown) => this.#log.debug({ err: error }, 'releasing slots failed')),
    );
  }

  /** Tracks work that must end before `stop` resolves. */
  #track(work: Promise<unknown>): void {
    const tracked = work.finally(() => this.#inFlight.delete(tracked));
    this.#inFlight.add(tracked);
    runInBackground(tracked, 'releasing a slot', this.#log);
  }

  /**
   * Retries until Redis is back, so that calls that ended during an outage are still reported. Gives up once the lease
   * has expired, because the report is then pointless.
   */
  async #retryThroughOutage<T>(report: () => Promise<T>): Promise<T> {
    const untilMs = performance.now() + this.#leaseMs;
    return await retryThroughOutage(() => callRedis(report), {
      isOutage: (error) => error instanceof AppError && !this.#isStopping && performance.now() <= untilMs,
      pauseMs: outagePauseMs,
    });
  }

  async #deliver(
    slot: CallSlot,
    { signal, takesKeptSlots = false }: Pick<AcquireOptions, 'signal' | 'takesKeptSlots'>,
  ): Promise<CallSlot> {
    this.#heldSlots.set(slot, createUse(slot, takesKeptSlots));
    this.#grantedAt.set(slot.accountId, (this.#grants += 1));
    if (!signal.aborted && !this.#isHandedBack) return slot;
    this.release(slot, 'none');
    signal.throwIfAborted();
    // The slot was requested before `handBack`. Never resolve, because the exit would interrupt any call that starts
    // now.
    return await new Promise<never>(() => undefined);
  }

  async #waitInQueue(
    name: string,
    candidates: readonly RouteCandidate[],
    options: AcquireOptions,
  ): Promise<CallSlot | null> {
    let queue = this.#queues.get(name);
    const isFirst = queue === undefined;
    queue ??= new WaitQueue();
    this.#queues.set(name, queue);
    const waiting = queue.wait(candidates, options);
    // The kept slots may be what these calls wait for.
    this.#kept.releaseAll();
    if (isFirst) runInBackground(this.#serve(name, queue), 'requesting slots', this.#log);
    const slot = await waiting;
    return slot === null ? null : await this.#deliver(slot, options);
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
        const isBackground = isBackgroundQueue(name);
        const result: AcquireResult | null = this.#isBlockedByPriorityQueue(name)
          ? { outcome: 'busy' }
          : await this.#tryAcquire(candidates, accountIds, isBackground);
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
        await Promise.race([woken, delay(waitMs * (0.5 + Math.random() / 2))]);
      }
    } catch (error) {
      queue.failAll(error);
    } finally {
      this.#queues.delete(name);
    }
  }

  /** Renews the leases of all held slots. Restores them if Redis has lost its data. */
  async #renew(): Promise<void> {
    const byKey = new Map<string, string[]>();
    for (const { candidate, lease } of this.#heldSlots.keys()) {
      const { keys, limits } = slotsOf(candidate);
      for (const [i, key] of keys.entries()) {
        if (limits[i] === 0) continue;
        const leases = byKey.get(key) ?? [];
        leases.push(lease);
        byKey.set(key, leases);
      }
    }
    try {
      await Promise.all(
        [...byKey].map(([key, leases]) => runRenewal(this.#redis, key, leases, this.#leaseMs)),
      );
    } catch (error) {
      this.#log.debug({ err: error }, 'renewing the leases of calls failed');
    }
  }
}

const createUse = (slot: CallSlot, isKeepable: boolean): SlotUse => ({
  slot,
  isKeepable,
  grantedAtMs: performance.now(),
  isReused: false,
});

/** Two infinite turns are equal, but their difference is NaN. */
const compareTurns = (a: number, b: number): number => (a === b ? 0 : a - b);

function takeFirst<T>(all: Iterable<T>, maxCount: number): T[] {
  const first: T[] = [];
  for (const one of all) if (first.push(one) === maxCount) break;
  return first;
}
