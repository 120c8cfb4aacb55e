import { LRUCache } from 'lru-cache';

/** Attempts that a process makes at once for one account. */
const maxPerAccount = 2;

/** How many accounts have a measured pace. The others start from the usual one. */
const knownPaces = 10_000;
const usualAttemptMs = 500;

/** Upper bound of a delay: the receiver may have become faster by then. */
const maxDeferMs = 120_000;
const minDeferMs = 50;

interface Pace {
  /** Moving average of how long attempts take. */
  attemptMs: number;
  nextTurnAtMs: number;
}

/**
 * Limits concurrent attempts per account, so that a receiver that does not respond delays only its own account's deliveries.
 * A delivery over the limit goes back to the queue until about its turn, estimated from how long the account's attempts take.
 * It occupies no slot of the process meanwhile, and the queue is not polled for it.
 */
export class DeliveryTurns {
  readonly #active = new Map<string, number>();
  readonly #paces = new LRUCache<string, Pace>({ max: knownPaces });
  readonly #nowMs: () => number;

  /** @param nowMs for tests: a clock in milliseconds */
  constructor(nowMs: () => number = () => performance.now()) {
    this.#nowMs = nowMs;
  }

  /** @returns a function to call once when the attempt has ended; null if the account is at its limit */
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

  /** After how many milliseconds a delivery over the limit should try again. */
  defer(accountId: string): number {
    const pace = this.#paceOf(accountId);
    const nowMs = this.#nowMs();
    const turnAtMs = Math.max(nowMs + minDeferMs, pace.nextTurnAtMs);
    // Random, so that these deliveries do not all return at once.
    if (turnAtMs - nowMs > maxDeferMs) return Math.round(maxDeferMs * (1 + Math.random()) * 0.5);
    pace.nextTurnAtMs = turnAtMs + pace.attemptMs / maxPerAccount;
    return Math.round(turnAtMs - nowMs);
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
