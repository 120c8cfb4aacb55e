import { AppError } from '../../shared/contract/errors.ts';
import { callRedis, type RedisClient } from '../../shared/platform/redis/redis-client.ts';
import { retryThroughOutage } from '../../shared/platform/redis/retry-through-outage.ts';
import type { CallSlot } from './acquire-script.ts';
import { slotsOf } from '../../shared/routing/candidate-keys.ts';
import { confirmProbe, runOutcome, type CallEnd } from './outcome-script.ts';
import { runRenewal } from './renew-script.ts';
import type { RouteCandidate } from '../../shared/routing/route-candidate.ts';
import type { Logger } from '../../shared/platform/runtime/logger.ts';
import { runInBackground } from '../../shared/platform/runtime/run-in-background.ts';
import { KeptSlots, type SlotUse } from './kept-slots.ts';
import { closedMessage, logOutcome } from './log-outcome.ts';
import type { SlotHolder } from './slot-holder.ts';
import { PendingSuccesses } from './pending-successes.ts';

/** Pause between two attempts while Redis is unavailable. */
export const outagePauseMs = 250;

/**
 * The slots that this process holds. Renews their leases, keeps free ones for a moment for the next call of their
 * account, and reports to Redis how calls ended.
 */
export class HeldSlots {
  readonly #redis: RedisClient;
  readonly #log: Logger;
  readonly #leaseMs: number;
  readonly #holder: Pick<SlotHolder, 'name' | 'isAlive'>;
  readonly #onReported: () => void;
  readonly #uses = new Map<CallSlot, SlotUse>();
  readonly #kept = new KeptSlots(({ slot }) => this.#end(slot, notCalled));
  readonly #successes = new PendingSuccesses((slot, calls) => this.#reportSuccesses(slot, calls));
  /** Probes already reported as successful. */
  readonly #confirmedProbes = new WeakSet<CallSlot>();
  /** Slots that were freed because this process counted as dead. */
  readonly #forgotten = new WeakSet<CallSlot>();
  readonly #inFlight = new Set<Promise<unknown>>();
  readonly #renewalTimer: NodeJS.Timeout;
  #isStopping = false;

  /**
   * @param holder under whose name this process holds slots
   * @param onReported called for each report: a slot may have become free, or a breaker may have closed. The report may
   * still be on its way. Redis executes commands sent from now on after it, unless it has lost its scripts.
   */
  constructor(
    redis: RedisClient,
    log: Logger,
    leaseMs: number,
    holder: Pick<SlotHolder, 'name' | 'isAlive'>,
    onReported: () => void,
  ) {
    this.#redis = redis;
    this.#log = log;
    this.#leaseMs = leaseMs;
    this.#holder = holder;
    this.#onReported = onReported;
    this.#renewalTimer = setInterval(
      () => runInBackground(this.renew(), 'renewing leases', log),
      leaseMs / 3,
    );
    this.#renewalTimer.unref();
  }

  /** @param isKeepable whether the call that got the slot may leave it to another one */
  add(slot: CallSlot, isKeepable: boolean): void {
    this.#uses.set(slot, createUse(slot, isKeepable));
  }

  /** Whether the slot served an earlier call, so that Redis was not asked for it. */
  isReused(slot: CallSlot): boolean {
    return this.#uses.get(slot)?.isReused === true;
  }

  /** Takes a slot that an earlier call of the account left; null if there is none. */
  takeKept(candidate: RouteCandidate, accountId: string): CallSlot | null {
    if (!this.#holder.isAlive) return null;
    return this.#isStopping ? null : (this.#kept.take(candidate, accountId)?.slot ?? null);
  }

  /** Releases the slots that no call uses now, and those in use after their calls. */
  releaseKept(): void {
    this.#kept.releaseAll();
  }

  /**
   * Ends a call. Never rejects, and need not be awaited.
   * @param mayKeep whether the slot may be kept for the account's next call
   */
  release(slot: CallSlot, end: CallEnd, mayKeep: boolean): void {
    const { outcome, cooldown, accountIds } = end;
    // The slot was freed when this process counted as dead, and what its call found out is old.
    if (this.#forgotten.has(slot)) return;
    // What is known about the targets may have changed.
    if ((outcome !== 'ok' && outcome !== 'none') || cooldown !== null) this.#kept.releaseAll();
    const use = this.#uses.get(slot) ?? createUse(slot, false);
    const isForOne = accountIds.length === 1 && accountIds[0] === slot.accountId;
    if (mayKeep && outcome === 'ok' && isForOne && !this.#isStopping && this.#kept.mayKeep(use)) {
      this.#successes.add(slot);
      this.#kept.keep(use);
    } else {
      this.#end(slot, end);
    }
  }

  /** Reports a failed call whose slot was released before. Never rejects, and need not be awaited. */
  reportFailure(slot: CallSlot, end: CallEnd): void {
    if (this.#forgotten.has(slot)) return;
    this.#kept.releaseAll();
    // Redis must count earlier successes, of all accounts, before the failure.
    this.#successes.flush();
    this.#track(this.#report({ ...slot, lease: '' }, end));
  }

  /** Forgets all slots, because they were freed. Their calls continue. @returns how many there were */
  forgetAll(): number {
    const count = this.#uses.size;
    for (const slot of this.#uses.keys()) this.#forgotten.add(slot);
    this.#kept.forgetAll();
    this.#successes.forgetAll();
    this.#uses.clear();
    return count;
  }

  /** Releases slots whose grant may have been lost: Redis may hold them under a lease unknown to this process. */
  releaseUnknown(candidates: readonly RouteCandidate[], leases: readonly string[]): void {
    const keys = [...new Set(candidates.flatMap((candidate) => slotsOf(candidate).keys))];
    const removing = this.#retryThroughOutage(() =>
      Promise.all(keys.map((key) => this.#redis.zrem(key, ...leases))),
    );
    this.#track(
      removing.catch((error: unknown) => this.#log.debug({ err: error }, 'releasing slots failed')),
    );
  }

  /** Reports once that the route of a probe is healthy. */
  confirmProbe(slot: CallSlot): void {
    if (!slot.isProbe || this.#confirmedProbes.has(slot)) return;
    this.#confirmedProbes.add(slot);
    const fields = { route: slot.candidate.route.id, upstream: slot.candidate.route.upstream.name };
    confirmProbe(this.#redis, slot).then(
      (isClosed) => {
        if (isClosed) this.#log.info(fields, closedMessage);
        this.#onReported();
      },
      (error: unknown) => this.#log.debug({ ...fields, err: error }, 'confirming a probe failed'),
    );
  }

  /** Keeps no more slots, and waits until everything that has ended is reported. */
  async stop(): Promise<void> {
    this.#stopKeeping();
    await Promise.all(this.#inFlight);
  }

  /** Keeps no more slots, and releases all that are held, including those of running calls. */
  releaseAll(): void {
    this.#stopKeeping();
    for (const slot of this.#uses.keys()) this.#end(slot, notCalled);
  }

  #stopKeeping(): void {
    clearInterval(this.#renewalTimer);
    this.#isStopping = true;
    this.#kept.releaseAll();
    this.#successes.flush();
  }

  /** Releases the slot in Redis, with the outcome of its last call. */
  #end(slot: CallSlot, end: CallEnd): void {
    this.#uses.delete(slot);
    // Redis must count earlier successes before a failure.
    const earlier = end.outcome === 'none' ? 0 : this.#successes.take(slot);
    if (end.outcome === 'ok') {
      this.#track(this.#report(slot, end, earlier + 1));
      return;
    }
    if (earlier > 0) this.#reportSuccesses(slot, earlier);
    this.#track(this.#report(slot, end));
  }

  /** Reports successful calls without releasing a slot. */
  #reportSuccesses(slot: CallSlot, calls: number): void {
    const end: CallEnd = { outcome: 'ok', cooldown: null, accountIds: [slot.accountId] };
    this.#track(this.#report({ ...slot, lease: '' }, end, calls));
  }

  async #report(slot: CallSlot, end: CallEnd, calls = 1): Promise<void> {
    const { candidate } = slot;
    const { cooldown, accountIds } = end;
    // Without a connection, commands fail immediately, and waiting calls would ask in vain for each call that ends.
    const isSent = this.#redis.status === 'ready';
    let attempts = 0;
    const reporting = this.#retryThroughOutage(() => {
      attempts += 1;
      return runOutcome(this.#redis, slot, end, calls);
    });
    // A waiting call can ask for the slot in the same write.
    if (isSent) this.#onReported();
    try {
      const result = await reporting;
      logOutcome(this.#log, candidate, result, cooldown, accountIds);
    } catch (error) {
      // Slots are leases and expire if they are not released.
      this.#log.debug({ route: candidate.route.id, err: error }, 'reporting the outcome of a call failed');
    }
    if (!isSent || attempts > 1) this.#onReported();
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

  /** Renews the leases of all held slots. Restores them if Redis has lost its data. Never rejects. */
  async renew(): Promise<void> {
    const { name } = this.#holder;
    const byKey = new Map<string, string[]>();
    for (const { candidate, lease } of this.#uses.keys()) {
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
        [...byKey].map(([key, leases]) => runRenewal(this.#redis, key, name, leases, this.#leaseMs)),
      );
    } catch (error) {
      this.#log.debug({ err: error }, 'renewing the leases of calls failed');
    }
  }
}

/** The end of a slot that served no call, or whose call did not end. */
const notCalled: CallEnd = { outcome: 'none', cooldown: null, accountIds: [] };

const createUse = (slot: CallSlot, isKeepable: boolean): SlotUse => ({
  slot,
  isKeepable,
  grantedAtMs: performance.now(),
  isReused: false,
});
