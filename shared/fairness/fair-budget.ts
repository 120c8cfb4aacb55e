import type { AppError } from '../contract/errors.ts';
import { longestTimerMs } from '../runtime/timers.ts';
import { FairQueue, type QueueEntry } from './fair-queue.ts';
import { Holdings } from './holdings.ts';

/** Smaller amounts pass one that there is not enough left for, but not for longer than this. */
const passingMs = 5_000;
/** From then on, of the whole: what comes free besides is saved up. */
const passingPart = 1 / 4;
const defaultMaxWaitingPerHolder = 256;

export interface FairBudgetOptions {
  /** What there is to share: bytes, or slots. */
  readonly capacity: number;
  /**
   * Whether holders may hold more than that together, as what they will hold is not known before it is there. Their
   * shares bound them all the same, but one that holds nothing never waits.
   */
  readonly mayOverrun?: boolean;
  /** How many of one holder may wait at once; more are refused. */
  readonly maxWaitingPerHolder?: number;
  /** For tests: a clock in milliseconds. */
  readonly nowMs?: () => number;
}

export interface AcquireOptions {
  /** Aborted when the caller has gone; `acquire` rejects with its reason. */
  readonly signal?: AbortSignal;
  /** How long to wait for a share before it is refused. */
  readonly waitMs: number;
  /** How many of the holder may wait at once, this one included; as the budget says unless given. */
  readonly maxWaiting?: number;
  /** What the caller is told when it is refused. */
  readonly refuse: () => AppError;
  /** Asked before it waits: throws where nothing would come of what it waits for. */
  readonly checkBeforeWaiting?: () => Promise<void>;
}

/** What one request holds of a budget, until it releases it. */
export interface BudgetShare {
  readonly holder: string;
  /** Nothing, once it is released. */
  readonly amount: number;
  /** Takes more, up to this amount in all, if it is there now. @returns false where it is not; nothing changes then */
  tryGrow(toAmount: number): boolean;
  /** Holds this amount, whether or not there is so much: it is there already. */
  changeTo(amount: number): void;
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
 * Something that can run out and that is shared: memory, slots of a process. Its holders are accounts, or networks of
 * callers where there is none. Holders that wait take turns, and none holds more than half of what the others leave it,
 * so that there is always something left for one more holder, however long the others hold theirs. The first share of a holder fits wherever there is enough left, and one that is
 * larger than the whole budget is granted when nothing else is held.
 *
 * What there is not enough left for is passed by what there is. Once that has gone on for a while, a part of the budget
 * is left to those that pass, and holders share it in the same way; all else is saved up for the one that was passed.
 * Small amounts so never wait for a large one, nor a large one for all the small ones that come.
 */
export class FairBudget {
  #capacity: number;
  readonly #mayOverrun: boolean;
  readonly #maxWaitingPerHolder: number;
  readonly #nowMs: () => number;
  readonly #queue = new FairQueue<Waiting>();
  readonly #holdings = new Holdings();
  /** Of these, what was granted while another amount was saved up for. */
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

  /** Whether another holder waits that holds less. */
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

  /** There is more of it, or less: then nothing is granted until enough has come back. */
  resize(capacity: number): void {
    this.#capacity = capacity;
    this.#grantWaiting();
  }

  /**
   * @throws what `refuse` makes when there is nothing for this holder in time; the signal's reason; what
   *   `checkBeforeWaiting` throws
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
        // It may have been the one that held the others up.
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

  /** Null where there is nothing for this holder now. */
  tryAcquire(holder: string, amount: number): BudgetShare | null {
    const passed = this.#findPassed();
    return this.#mayGrant(holder, amount, passed) ? this.#createShare(holder, amount, passed !== null) : null;
  }

  #grantWaiting(): void {
    while (this.#grantNext());
  }

  /** Skips holders that have their share. @returns whether one was granted */
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

  /** The first that there is not enough left for, and that others have passed for long enough. */
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

  /** The part for those that pass leaves enough for the one that is passed, however long they hold theirs. */
  #mayPass(holder: string, amount: number, passed: Waiting): boolean {
    const part = Math.min(this.#capacity * passingPart, this.#capacity - passed.amount);
    return this.#passing.sum + amount <= part && this.#passing.isWithinShare(part, holder, 0, amount);
  }

  #mayHold(holder: string, before: number, amount: number): boolean {
    return this.#isLeft(before, amount) && this.#isWithinShare(holder, before, amount);
  }

  /** @param before what the same request holds already, and gives up for the new amount */
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
