import { LRUCache } from 'lru-cache';

/** Attempts of one account that a process makes at once. */
const maxPerAccount = 2;

/** Accounts whose pace is known; of others it is taken to be the usual one. */
const knownPaces = 10_000;
const usualAttemptMs = 500;

/** The turn of a delivery is looked at again after this time at the latest: by then its receiver may be quicker. */
const maxDeferMs = 120_000;
const minDeferMs = 50;

interface Pace {
  /** A moving average. */
  attemptMs: number;
  nextTurnAtMs: number;
}

/**
 * Bounds how many attempts of one account are under way in a process, so that a receiver that does not respond holds up the
 * deliveries of its own account alone. A delivery that finds them all taken is put back on the queue until about its turn,
 * as the account's attempts have taken so far: it neither keeps a slot of the process, nor comes again and again.
 */
export class DeliveryTurns {
  readonly #active = new Map<string, number>();
  readonly #paces = new LRUCache<string, Pace>({ max: knownPaces });
  readonly #nowMs: () => number;

  /** @param nowMs for tests: a clock in milliseconds */
  constructor(nowMs: () => number = () => performance.now()) {
    this.#nowMs = nowMs;
  }

  /** @returns what ends the attempt, once; null where it is not the account's turn */
  tryBegin(accountId: string): (() => void) | null {
    const active = this.#active.get(accountId) ?? 0;
    if (active >= maxPerAccount) return null;
    this.#active.set(accountId, active + 1);
    const sinceMs = this.#nowMs();
    return () => {
      const left = this.#active.get(accountId)! - 1;
      if (left === 0) this.#active.delete(accountId);
      else this.#active.set(accountId, left);
      const pace = this.#paceOf(accountId);
      pace.attemptMs = (3 * pace.attemptMs + this.#nowMs() - sinceMs) / 4;
    };
  }

  /** In how many milliseconds a delivery that found no turn should come again. */
  defer(accountId: string): number {
    const pace = this.#paceOf(accountId);
    const nowMs = this.#nowMs();
    const turnAtMs = Math.max(nowMs + minDeferMs, pace.nextTurnAtMs);
    // Those beyond come at different times, so that they do not all look at once.
    if (turnAtMs - nowMs > maxDeferMs) return Math.ceil(maxDeferMs * (1 + Math.random()) * 0.5);
    pace.nextTurnAtMs = turnAtMs + pace.attemptMs / maxPerAccount;
    return Math.ceil(turnAtMs - nowMs);
  }

  #paceOf(accountId: string): Pace {
    let pace = this.#paces.get(accountId);
    if (pace === undefined) {
      pace = { attemptMs: usualAttemptMs, nextTurnAtMs: 0 };
      this.#paces.set(accountId, pace);
    }
    return pace;
  }
}
