import type { AppError } from '../contract/errors.ts';
import { longestTimerMs } from '../runtime/timers.ts';
import { FairQueue, type QueueEntry } from './fair-queue.ts';
import { Holdings } from './holdings.ts';

/** Smaller amounts may overtake one that does not fit yet, but without limit only for this long. */
const passingMs = 5_000;
/** After that, the part of the budget left to smaller amounts. Everything else that is freed is saved up. */
const passingPart = 1 / 4;
const defaultMaxWaitingPerHolder = 256;

export interface FairBudgetOptions {
  /** How much there is to share: bytes or slots. */
  readonly capacity: number;
  /**
   * Whether holders together may exceed the capacity, because the amount they will hold is not known in advance. Shares
   * still limit each of them, but a holder that holds nothing never waits.
   */
  readonly mayOverrun?: boolean;
  /** How many requests of one holder may wait at once; more are refused. */
  readonly maxWaitingPerHolder?: number;
  /** A clock in milliseconds, for tests. */
  readonly nowMs?: () => number;
}

export interface AcquireOptions {
  /** Aborted when the caller has left; `acquire` then rejects with its reason. */
  readonly signal?: AbortSignal;
  /** How long to wait before the request is refused. */
  readonly waitMs: number;
  /** How many requests of the holder may wait at once, including this one; the budget's setting by default. */
  readonly maxWaiting?: number;
  /** Creates the error for a refused request. */
  readonly refuse: () => AppError;
  /** Called before waiting. Throws if there is no point in waiting. */
  readonly checkBeforeWaiting?: () => Promise<void>;
}

/** What one request holds of a budget until it releases it. */
export interface BudgetShare {
  readonly holder: string;
  /** 0 once released. */
  readonly amount: number;
  /** Grows to this total amount if it is available now. @returns false if it is not, and then nothing changes */
  tryGrow(toAmount: number): boolean;
  /** Sets the amount even if it exceeds the capacity, because it is already in use. */
  changeTo(amount: number): void;
  /** Gives back what exceeds this amount. */
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
 * A limited resource to share: memory, or slots of a process. Holders are accounts, or client networks where there is
 * no account. Waiting holders take turns, and no holder gets more than half of what the others leave it, so there is
 * always something left for one more holder, however long the others keep theirs. The first share of a holder is
 * granted wherever it fits, and one larger than the whole budget is granted when nothing else is held.
 *
 * A smaller amount that fits may overtake a larger one that does not. Once that has gone on for a while, only a part of
 * the budget is left to those that overtake, which they share in the same way. Everything else is saved up for the one
 * that was overtaken. Small amounts therefore never wait for a large one, nor does a large one wait for every small one
 * that arrives.
 */
export class FairBudget {
  #capacity: number;
  readonly #mayOverrun: boolean;
  readonly #maxWaitingPerHolder: number;
  readonly #nowMs: () => number;
  readonly #queue = new FairQueue<Waiting>();
  readonly #holdings = new Holdings();
  /** The part of the holdings granted while another amount was being saved up for. */
  readonly #passing = new Holdings();

  constructor({ capacity, mayOverrun = false, maxWaitingPerHolder, nowMs }: FairBudgetOptions) {
    this.#capacity = capacity;
    this.#mayOverrun = mayOverrun;
    this.#maxWaitingPerHolder = maxWaitingPerHolder ?? defaultMaxWaitingPerHolder;
    this.#nowMs = nowMs ?? (() => performance.now());
  }

  get held(): number {
    return this.#holdings.sum;
  }

  heldBy(holder: string): number {
    return this.#holdings.of(holder);
  }

  /** Whether a waiting holder holds less than this one. */
  isContested(holder: string): boolean {
    const own = this.heldBy(holder);
    for (const waiting of this.#queue.holders()) {
      if (waiting !== holder && this.heldBy(waiting) < own) return true;
    }
    return false;
  }

  get waiting(): number {
    return this.#queue.size;
  }

  get waitingHolders(): number {
    return this.#queue.holderCount;
  }

  /** Changes the capacity. After a reduction nothing is granted until enough has been given back. */
  resize(capacity: number): void {
    this.#capacity = capacity;
    this.#grantWaiting();
  }

  /**
   * Acquires a share, waiting for it if necessary.
   * @throws what `refuse` returns if the share is not available in time; the signal's reason; what `checkBeforeWaiting`
   * throws
   */
  async acquire(holder: string, amount: number, options: AcquireOptions): Promise<BudgetShare> {
    const { signal, checkBeforeWaiting } = options;
    signal?.throwIfAborted();
    const share = this.#queue.countOf(holder) === 0 ? this.tryAcquire(holder, amount) : null;
    if (share !== null) return share;
    if (checkBeforeWaiting !== undefined) {
      await checkBeforeWaiting();
      signal?.throwIfAborted();
    }
    return await this.#wait(holder, amount, options);
  }

  async #wait(
    holder: string,
    amount: number,
    { signal, waitMs, maxWaiting = this.#maxWaitingPerHolder, refuse }: AcquireOptions,
  ): Promise<BudgetShare> {
    if (this.#queue.countOf(holder) >= maxWaiting) throw refuse();
    return await new Promise<BudgetShare>((resolve, reject) => {
      const stopWaiting = (): void => {
        clearTimeout(timer);
        signal?.removeEventListener('abort', onAbort);
      };
      const giveUp = (error: unknown): void => {
        stopWaiting();
        this.#queue.remove(entry);
        reject(error);
        // This request may have been the one blocking the others.
        this.#grantWaiting();
      };
      const onAbort = (): void => giveUp(signal!.reason);
      const timer = setTimeout(() => giveUp(refuse()), Math.min(longestTimerMs, waitMs));
      signal?.addEventListener('abort', onAbort, { once: true });
      const entry: QueueEntry<Waiting> = this.#queue.add(holder, {
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

  /** Returns null if nothing is available for this holder now. */
  tryAcquire(holder: string, amount: number): BudgetShare | null {
    const passed = this.#findPassed();
    return this.#mayGrant(holder, amount, passed) ? this.#createShare(holder, amount, passed !== null) : null;
  }

  #grantWaiting(): void {
    while (this.#grantNext());
  }

  /** Skips holders that have their full share. @returns whether a share was granted */
  #grantNext(): boolean {
    const passed = this.#findPassed();
    for (const entry of this.#queue.heads()) {
      const { amount } = entry.item;
      if (!this.#mayGrant(entry.holder, amount, passed)) continue;
      const { grant } = this.#queue.serve(entry);
      grant(this.#createShare(entry.holder, amount, passed !== null));
      return true;
    }
    return false;
  }

  /** The first entry that does not fit and that others have overtaken for long enough. */
  #findPassed(): Waiting | null {
    const nowMs = this.#nowMs();
    for (const { holder, item } of this.#queue.heads()) {
      if (nowMs - item.sinceMs <= passingMs || this.#isLeft(0, item.amount)) continue;
      if (this.#isWithinShare(holder, 0, item.amount)) return item;
    }
    return null;
  }

  #mayGrant(holder: string, amount: number, passed: Waiting | null): boolean {
    if (!this.#mayHold(holder, 0, amount)) return false;
    return passed === null || this.#mayPass(holder, amount, passed);
  }

  /** The part for those that overtake leaves enough for the overtaken one, however long they hold theirs. */
  #mayPass(holder: string, amount: number, passed: Waiting): boolean {
    const part = Math.min(this.#capacity * passingPart, this.#capacity - passed.amount);
    return this.#passing.sum + amount <= part && this.#passing.isWithinShare(part, holder, 0, amount);
  }

  #mayHold(holder: string, before: number, amount: number): boolean {
    return this.#isLeft(before, amount) && this.#isWithinShare(holder, before, amount);
  }

  /** @param before what the same request already holds and gives up for the new amount */
  #isLeft(before: number, amount: number): boolean {
    const heldByOthers = this.held - before;
    return this.#mayOverrun || heldByOthers === 0 || heldByOthers + amount <= this.#capacity;
  }

  #isWithinShare(holder: string, before: number, amount: number): boolean {
    return this.#holdings.isWithinShare(this.#capacity, holder, before, amount);
  }

  #createShare(holder: string, amount: number, isPassing: boolean): BudgetShare {
    let own = 0;
    let isReleased = false;
    const hold = (to: number): void => {
      this.#holdings.change(holder, to - own);
      if (isPassing) this.#passing.change(holder, to - own);
      own = to;
    };
    const changeTo = (to: number): void => {
      if (isReleased) return;
      const isLess = to < own;
      hold(to);
      if (isLess) this.#grantWaiting();
    };
    hold(amount);
    return {
      holder,
      get amount() {
        return own;
      },
      tryGrow: (toAmount) => {
        if (isReleased || !this.#mayHold(holder, own, toAmount)) return false;
        hold(toAmount);
        return true;
      },
      changeTo,
      shrink: (toAmount) => {
        if (toAmount < own) changeTo(toAmount);
      },
      release: () => {
        changeTo(0);
        isReleased = true;
      },
    };
  }
}
