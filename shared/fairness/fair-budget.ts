// decision 0037
import type { AppError } from '../contract/errors.ts';
import { maxTimerMs } from '../platform/runtime/timers.ts';
import { FairQueue, type QueueEntry } from './fair-queue.ts';
import { Holdings } from './holdings.ts';

/** How long smaller amounts may freely overtake an amount that does not fit yet. */
const unlimitedOvertakingMs = 5_000;
/**
 * After that, smaller amounts may use only this part of the budget. All other capacity that is released is saved up for
 * the overtaken amount.
 */
const overtakingPart = 1 / 4;
const defaultMaxWaitingPerHolder = 256;

export interface FairBudgetOptions {
  /** The capacity to share, in bytes or slots. */
  readonly capacity: number;
  /**
   * Whether holders together may exceed the capacity, because the amount they will hold is not known in advance. Shares
   * still limit each holder, but a holder that holds nothing never waits.
   */
  readonly mayExceedCapacity?: boolean;
  /** How many requests of one holder may wait at the same time; further ones fail. */
  readonly maxWaitingPerHolder?: number;
  /** A clock in milliseconds, for tests. */
  readonly nowMs?: () => number;
}

export interface AcquireOptions {
  /** Aborted when the caller disconnects; `acquire` then rejects with its reason. */
  readonly signal?: AbortSignal;
  /** How long to wait before the request fails. */
  readonly waitMs: number;
  /** How many requests of the holder may wait at the same time, including this one; the budget's setting by default. */
  readonly maxWaiting?: number;
  /** Creates the error for a request that gets no share. */
  readonly createError: () => AppError;
  /** Called before waiting. Throws if waiting is pointless. */
  readonly checkBeforeWaiting?: () => Promise<void>;
}

/** The amount of a budget that one request holds until it releases it. */
export interface BudgetShare {
  readonly holder: string;
  /** 0 once released. */
  readonly amount: number;
  /** Grows to this total amount if it is available now. @returns false if it is not available; nothing changes then */
  tryGrow(toAmount: number): boolean;
  /** Sets the amount even if it exceeds the capacity, because it is already in use. */
  changeTo(amount: number): void;
  /** Releases everything above this amount. */
  shrink(toAmount: number): void;
  /** Releases everything; a second call does nothing. */
  release(): void;
}

interface PendingAcquire {
  readonly amount: number;
  readonly sinceMs: number;
  readonly grant: (share: BudgetShare) => void;
}

/**
 * A limited resource that holders share, such as memory or slots of a process. Holders are accounts, or client networks
 * if there is no account. Waiting holders take turns. A holder gets at most half of the capacity not held by others, so
 * some capacity always remains for one more holder, even if the others never release theirs. A holder's first share is
 * granted whenever it fits. A share larger than the whole budget is granted when nothing else is held.
 *
 * A smaller amount that fits may overtake a larger one that does not. After a while, only a part of the budget remains
 * available for overtaking, and is shared by the same rules. Everything else is saved up for the overtaken amount.
 * Small amounts therefore never wait for a large one, and a large one does not wait for all small ones that arrive
 * after it.
 */
export class FairBudget {
  #capacity: number;
  readonly #mayExceedCapacity: boolean;
  readonly #maxWaitingPerHolder: number;
  readonly #nowMs: () => number;
  readonly #queue = new FairQueue<PendingAcquire>();
  readonly #holdings = new Holdings();
  /** The part of the holdings that was granted while capacity was being saved up for another amount. */
  readonly #overtaking = new Holdings();

  constructor({ capacity, mayExceedCapacity = false, maxWaitingPerHolder, nowMs }: FairBudgetOptions) {
    this.#capacity = capacity;
    this.#mayExceedCapacity = mayExceedCapacity;
    this.#maxWaitingPerHolder = maxWaitingPerHolder ?? defaultMaxWaitingPerHolder;
    this.#nowMs = nowMs ?? (() => performance.now());
  }

  get capacity(): number {
    return this.#capacity;
  }

  get held(): number {
    return this.#holdings.sum;
  }

  heldBy(holder: string): number {
    return this.#holdings.of(holder);
  }

  /** Whether a waiting holder holds less than this one. */
  isContested(holder: string): boolean {
    const held = this.heldBy(holder);
    for (const other of this.#queue.holders()) {
      if (other !== holder && this.heldBy(other) < held) return true;
    }
    return false;
  }

  get waiting(): number {
    return this.#queue.size;
  }

  get waitingHolders(): number {
    return this.#queue.holderCount;
  }

  /** Changes the capacity. After a reduction nothing is granted until enough has been released. */
  resize(capacity: number): void {
    this.#capacity = capacity;
    this.#grantWaiting();
  }

  /**
   * Acquires a share, waiting for it if necessary.
   * @throws the error from `createError` if the share is not available in time; the signal's reason; any error that
   * `checkBeforeWaiting` throws
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
    { signal, waitMs, maxWaiting = this.#maxWaitingPerHolder, createError }: AcquireOptions,
  ): Promise<BudgetShare> {
    if (this.#queue.countOf(holder) >= maxWaiting) throw createError();
    return await new Promise<BudgetShare>((resolve, reject) => {
      const stopWaiting = (): void => {
        clearTimeout(timer);
        signal?.removeEventListener('abort', onAbort);
      };
      const fail = (error: unknown): void => {
        stopWaiting();
        this.#queue.remove(entry);
        reject(error);
        // This request may have been the one blocking the others.
        this.#grantWaiting();
      };
      const onAbort = (): void => fail(signal!.reason);
      const timer = setTimeout(() => fail(createError()), Math.min(maxTimerMs, waitMs));
      signal?.addEventListener('abort', onAbort, { once: true });
      const entry: QueueEntry<PendingAcquire> = this.#queue.add(holder, {
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
    const overtaken = this.#findOvertaken();
    return this.#mayGrant(holder, amount, overtaken)
      ? this.#createShare(holder, amount, overtaken !== null)
      : null;
  }

  #grantWaiting(): void {
    while (this.#grantNext());
  }

  /** Grants one share, skipping holders that are at their limit. @returns whether a share was granted */
  #grantNext(): boolean {
    const overtaken = this.#findOvertaken();
    for (const entry of this.#queue.heads()) {
      const { amount } = entry.item;
      if (!this.#mayGrant(entry.holder, amount, overtaken)) continue;
      const { grant } = this.#queue.serve(entry);
      grant(this.#createShare(entry.holder, amount, overtaken !== null));
      return true;
    }
    return false;
  }

  /** Finds the first entry that does not fit and has been overtaken for long enough to save up capacity for it. */
  #findOvertaken(): PendingAcquire | null {
    const nowMs = this.#nowMs();
    for (const { holder, item } of this.#queue.heads()) {
      if (nowMs - item.sinceMs <= unlimitedOvertakingMs || this.#isAvailable(0, item.amount)) continue;
      if (this.#isWithinShare(holder, 0, item.amount)) return item;
    }
    return null;
  }

  #mayGrant(holder: string, amount: number, overtaken: PendingAcquire | null): boolean {
    if (!this.#mayHold(holder, 0, amount)) return false;
    return overtaken === null || this.#mayOvertake(holder, amount, overtaken);
  }

  /**
   * Whether this amount may overtake. The part available for overtaking leaves enough for the overtaken amount, even if
   * the overtaking shares are never released.
   */
  #mayOvertake(holder: string, amount: number, overtaken: PendingAcquire): boolean {
    const part = Math.min(this.#capacity * overtakingPart, this.#capacity - overtaken.amount);
    return this.#overtaking.sum + amount <= part && this.#overtaking.isWithinShare(part, holder, 0, amount);
  }

  #mayHold(holder: string, before: number, amount: number): boolean {
    return this.#isAvailable(before, amount) && this.#isWithinShare(holder, before, amount);
  }

  /** @param before the amount that the same request already holds and that the new amount replaces */
  #isAvailable(before: number, amount: number): boolean {
    const heldByOthers = this.held - before;
    return this.#mayExceedCapacity || heldByOthers === 0 || heldByOthers + amount <= this.#capacity;
  }

  #isWithinShare(holder: string, before: number, amount: number): boolean {
    return this.#holdings.isWithinShare(this.#capacity, holder, before, amount);
  }

  #createShare(holder: string, amount: number, isOvertaking: boolean): BudgetShare {
    let held = 0;
    let isReleased = false;
    const hold = (to: number): void => {
      this.#holdings.change(holder, to - held);
      if (isOvertaking) this.#overtaking.change(holder, to - held);
      held = to;
    };
    const changeTo = (to: number): void => {
      if (isReleased) return;
      const isSmaller = to < held;
      hold(to);
      if (isSmaller) this.#grantWaiting();
    };
    hold(amount);
    return {
      holder,
      get amount() {
        return held;
      },
      tryGrow: (toAmount) => {
        if (isReleased || !this.#mayHold(holder, held, toAmount)) return false;
        hold(toAmount);
        return true;
      },
      changeTo,
      shrink: (toAmount) => {
        if (toAmount < held) changeTo(toAmount);
      },
      release: () => {
        changeTo(0);
        isReleased = true;
      },
    };
  }
}
