import type { AppError } from '../contract/errors.ts';
import { FairQueue, type QueueEntry } from './fair-queue.ts';

/** Smaller amounts pass one that there is not enough left for, but not for longer than this. */
const passingMs = 5_000;
const defaultMaxWaitingPerAccount = 256;

export interface FairBudgetOptions {
  /** What there is to share: bytes, or slots. */
  readonly capacity: number;
  /** How many of one account may wait at once; more are refused. */
  readonly maxWaitingPerAccount?: number;
  /** For tests: a clock in milliseconds. */
  readonly nowMs?: () => number;
}

export interface AcquireOptions {
  /** Aborted when the caller has gone; `acquire` rejects with its reason. */
  readonly signal?: AbortSignal;
  /** How long to wait for a share before it is refused. */
  readonly waitMs: number;
  /** What the caller is told when it is refused. */
  readonly refuse: () => AppError;
}

/** What one request holds of a budget, until it releases it. */
export interface BudgetShare {
  readonly amount: number;
  /** Takes more, up to this amount in all, if it is there now. @returns false where it is not; nothing changes then */
  tryGrow(toAmount: number): boolean;
  /** Gives back what is beyond this amount. */
  shrink(toAmount: number): void;
  /** Gives everything back; a second call does nothing. */
  release(): void;
}

interface Waiting {
  readonly amount: number;
  readonly sinceMs: number;
  readonly grant: (share: BudgetShare) => void;
}

/**
 * Something that can run out and that accounts share: memory, slots of a process. Accounts that wait take turns, and
 * none holds more than half of what the others leave it, so that there is always something left for one more account,
 * however long the others hold theirs. The first share of an account fits wherever there is enough left, and one that is
 * larger than the whole budget is granted when nothing else is held.
 */
export class FairBudget {
  readonly #capacity: number;
  readonly #maxWaitingPerAccount: number;
  readonly #nowMs: () => number;
  readonly #queue = new FairQueue<Waiting>();
  readonly #heldBy = new Map<string, number>();
  #held = 0;

  constructor({ capacity, maxWaitingPerAccount, nowMs }: FairBudgetOptions) {
    this.#capacity = capacity;
    this.#maxWaitingPerAccount = maxWaitingPerAccount ?? defaultMaxWaitingPerAccount;
    this.#nowMs = nowMs ?? (() => performance.now());
  }

  get held(): number {
    return this.#held;
  }

  get waiting(): number {
    return this.#queue.size;
  }

  /** @throws what `refuse` makes when there is nothing for this account in time; the signal's reason */
  async acquire(
    accountId: string,
    amount: number,
    { signal, waitMs, refuse }: AcquireOptions,
  ): Promise<BudgetShare> {
    signal?.throwIfAborted();
    const share = this.#queue.countOf(accountId) === 0 ? this.tryAcquire(accountId, amount) : null;
    if (share !== null) return share;
    if (this.#queue.countOf(accountId) >= this.#maxWaitingPerAccount) throw refuse();
    return await new Promise<BudgetShare>((resolve, reject) => {
      const stopWaiting = (): void => {
        clearTimeout(timer);
        signal?.removeEventListener('abort', onAbort);
      };
      const giveUp = (error: unknown): void => {
        stopWaiting();
        this.#queue.remove(entry);
        reject(error);
        // It may have been the one that held the others up.
        this.#grantWaiting();
      };
      const onAbort = (): void => giveUp(signal!.reason);
      const timer = setTimeout(() => giveUp(refuse()), waitMs);
      signal?.addEventListener('abort', onAbort, { once: true });
      const entry: QueueEntry<Waiting> = this.#queue.add(accountId, {
        amount,
        sinceMs: this.#nowMs(),
        grant: (share) => {
          stopWaiting();
          resolve(share);
        },
      });
      this.#grantWaiting();
    });
  }

  /** Null where there is nothing for this account now. */
  tryAcquire(accountId: string, amount: number): BudgetShare | null {
    if (!this.#mayHold(accountId, 0, amount) || this.#isKeptForLargeOne()) return null;
    return this.#createShare(accountId, amount);
  }

  /** What comes free is saved up for one that has been passed for long enough. */
  #isKeptForLargeOne(): boolean {
    const nowMs = this.#nowMs();
    for (const { accountId, item } of this.#queue.heads()) {
      if (nowMs - item.sinceMs > passingMs && this.#isWithinShare(accountId, 0, item.amount)) return true;
    }
    return false;
  }

  #grantWaiting(): void {
    for (let next = this.#findNext(); next !== null; next = this.#findNext()) {
      const { amount, grant } = this.#queue.serve(next);
      grant(this.#createShare(next.accountId, amount));
    }
  }

  /** Skips accounts that have their share. One that there is not enough left for is waited for in the end. */
  #findNext(): QueueEntry<Waiting> | null {
    for (const entry of this.#queue.heads()) {
      const { amount, sinceMs } = entry.item;
      if (!this.#isWithinShare(entry.accountId, 0, amount)) continue;
      if (this.#isLeft(0, amount)) return entry;
      if (this.#nowMs() - sinceMs > passingMs) return null;
    }
    return null;
  }

  #mayHold(accountId: string, before: number, amount: number): boolean {
    return this.#isLeft(before, amount) && this.#isWithinShare(accountId, before, amount);
  }

  /** @param before what the same request holds already, and gives up for the new amount */
  #isLeft(before: number, amount: number): boolean {
    const heldByOthers = this.#held - before;
    return heldByOthers === 0 || heldByOthers + amount <= this.#capacity;
  }

  #isWithinShare(accountId: string, before: number, amount: number): boolean {
    const own = (this.#heldBy.get(accountId) ?? 0) - before;
    const left = this.#capacity - this.#held + before;
    return own === 0 || own + amount <= (left + own) / 2;
  }

  #createShare(accountId: string, amount: number): BudgetShare {
    let own = amount;
    let isReleased = false;
    this.#change(accountId, amount);
    return {
      get amount() {
        return own;
      },
      tryGrow: (toAmount) => {
        if (isReleased || !this.#mayHold(accountId, own, toAmount)) return false;
        this.#change(accountId, toAmount - own);
        own = toAmount;
        return true;
      },
      shrink: (toAmount) => {
        if (isReleased || toAmount >= own) return;
        this.#change(accountId, toAmount - own);
        own = toAmount;
        this.#grantWaiting();
      },
      release: () => {
        if (isReleased) return;
        isReleased = true;
        this.#change(accountId, -own);
        this.#grantWaiting();
      },
    };
  }

  #change(accountId: string, by: number): void {
    this.#held += by;
    const own = (this.#heldBy.get(accountId) ?? 0) + by;
    if (own > 0) this.#heldBy.set(accountId, own);
    else this.#heldBy.delete(accountId);
  }
}
