// decision 0018
import { AppError } from '../../shared/contract/errors.ts';
import { FairQueue, type QueueEntry } from '../../shared/fairness/fair-queue.ts';
import type { AcquirePause, CallSlot } from './acquire-script.ts';
import type { CallClass } from '../../shared/work/queue/call-class.ts';
import { maxTimerMs } from '../../shared/platform/runtime/timers.ts';
import type { RouteCandidate } from '../../shared/routing/route-candidate.ts';

/** How long a request waits while none of its candidates can be called, in milliseconds. */
export interface WaitLimits {
  /** Until a key's cooldown ends. The vendor's retry time is reliable. */
  readonly keyMs: number;
  /** Until an open circuit breaker lets a probe through. The probe may still fail. */
  readonly breakerMs: number;
}

export interface SlotOptions {
  /**
   * The accounts that the slot may be for, in the order of their turns. Evaluated repeatedly while the call waits.
   */
  readonly accountIds: () => Iterable<string>;
  readonly signal: AbortSignal;
  /** The call fails if it has no slot by then; milliseconds since the epoch. */
  readonly deadlineAtMs: number;
  readonly waitLimits: WaitLimits;
  /** The catalog's id of the model. */
  readonly model?: string;
  /** `interactive` by default. Waiting calls of an earlier class get a slot first. */
  readonly callClass?: CallClass;
  /**
   * Whether the call may take over the slot of an earlier one, without a round trip to Redis. Its caller must make sure
   * by itself that somebody still waits for it.
   */
  readonly takesKeptSlots?: boolean;
}

interface WaitingCall extends SlotOptions {
  readonly candidates: readonly RouteCandidate[];
  readonly sinceMs: number;
  readonly settle: (result: { slot: CallSlot | null } | { error: unknown }) => void;
}

/** The calls of one process and one class that wait for slots of the same candidates. Accounts take turns. */
export class WaitQueue {
  readonly callClass: CallClass;
  readonly #waiting = new FairQueue<WaitingCall>();
  /** Since when the queue is blocked only by pauses; null while it is blocked by a lack of slots. */
  #pausedAtMs: number | null = null;
  /** Accounts that have requested a slot since the queue was paused and found every candidate paused. */
  readonly #pausedIds = new Set<string>();
  #wake = (): void => undefined;

  constructor(callClass: CallClass) {
    this.callClass = callClass;
  }

  /** Resolves with the slot, or with null if none becomes free within the call's wait limits. */
  async wait(candidates: readonly RouteCandidate[], options: SlotOptions): Promise<CallSlot | null> {
    const { accountIds, signal, deadlineAtMs } = options;
    return await new Promise((resolve, reject) => {
      const onAbort = (): void => waiting.settle({ error: signal.reason });
      const timer = setTimeout(
        () => waiting.settle({ error: new AppError('deadline_exceeded') }),
        Math.min(maxTimerMs, Math.max(0, deadlineAtMs - Date.now())),
      );
      signal.addEventListener('abort', onAbort, { once: true });
      const waiting: WaitingCall = {
        ...options,
        candidates,
        sinceMs: performance.now(),
        settle: (result) => {
          clearTimeout(timer);
          signal.removeEventListener('abort', onAbort);
          this.#waiting.remove(entry);
          if ('slot' in result) resolve(result.slot);
          else reject(result.error);
        },
      };
      const [accountId = ''] = accountIds();
      const entry: QueueEntry<WaitingCall> = this.#waiting.add(accountId, waiting);
    });
  }

  /** Returns the candidates in the order of the next call in the fair queue; null if the queue is empty. */
  nextCandidates(): readonly RouteCandidate[] | null {
    return this.#waiting.peek()?.item.candidates ?? null;
  }

  /**
   * Returns the waiting accounts in the order of their turns, without the first `skippedCount`. If that leaves none,
   * starts again from the first.
   */
  nextAccountIds(maxCount: number, skippedCount = 0): string[] {
    const accountIds = new Set<string>();
    for (const { item } of this.#waiting.heads()) {
      for (const accountId of item.accountIds()) {
        accountIds.add(accountId);
        if (accountIds.size === skippedCount + maxCount) return [...accountIds].slice(skippedCount);
      }
    }
    const ids = [...accountIds];
    return ids.length > skippedCount ? ids.slice(skippedCount) : ids.slice(0, maxCount);
  }

  /**
   * Passes the slot to the next call of its account.
   * @returns false if no call of the account is waiting
   */
  serve(slot: CallSlot): boolean {
    const next = this.#findNext(slot.accountId);
    if (next === undefined) return false;
    this.#waiting.serve(next).settle({ slot });
    return true;
  }

  /** Prefers a call of the account itself over a call that serves several accounts. */
  #findNext(accountId: string): QueueEntry<WaitingCall> | undefined {
    const serves = ({ item }: QueueEntry<WaitingCall>): boolean => {
      for (const id of item.accountIds()) if (id === accountId) return true;
      return false;
    };
    const ofAccount = this.#waiting.headOf(accountId);
    if (ofAccount !== undefined && serves(ofAccount)) return ofAccount;
    for (const head of this.#waiting.heads()) if (serves(head)) return head;
    return undefined;
  }

  /**
   * Settles calls whose wait limits are shorter than the pause, without a slot. Time spent waiting for slots does not
   * count.
   * @param affectedIds the accounts that the pause applies to; others may still use the keys and circuit breakers
   */
  pause(pause: AcquirePause, affectedIds: readonly string[]): void {
    const nowMs = performance.now();
    this.#pausedAtMs ??= nowMs;
    const pausedAtMs = this.#pausedAtMs;
    for (const accountId of affectedIds) this.#pausedIds.add(accountId);
    const isPaused = ({ accountIds }: WaitingCall): boolean => {
      const ids = [...accountIds()];
      return ids.some((id) => affectedIds.includes(id)) && ids.every((id) => this.#pausedIds.has(id));
    };
    const expired = [...this.#waiting.entries()].filter(
      ({ item }) =>
        isPaused(item) &&
        !isWithinWaitLimits(pause, item.waitLimits, nowMs - Math.max(pausedAtMs, item.sinceMs)),
    );
    for (const { item } of expired) item.settle({ slot: null });
  }

  unpause(): void {
    this.#pausedAtMs = null;
    this.#pausedIds.clear();
  }

  /** The waiting calls, with the time since when each waits, according to `performance.now` (ms). */
  *calls(): Generator<Pick<WaitingCall, 'model' | 'sinceMs'>> {
    for (const { item } of this.#waiting.entries()) yield item;
  }

  /** Fails the calls for these models. @returns how many */
  failThose(isOf: (model: string) => boolean, error: unknown): number {
    const calls = [...this.#waiting.entries()].filter(
      ({ item: { model } }) => model !== undefined && isOf(model),
    );
    for (const { item } of calls) item.settle({ error });
    return calls.length;
  }

  failAll(error: unknown): void {
    for (const { settle } of this.#waiting.drain()) settle({ error });
  }

  async woken(): Promise<void> {
    await new Promise<void>((resolve) => {
      this.#wake = resolve;
    });
  }

  /** Wakes the queue after a slot may have become free. */
  wake(): void {
    this.#wake();
  }
}

/** @param waitedMs how long the call has already been paused */
export function isWithinWaitLimits(
  { keyMs, breakerMs }: AcquirePause,
  waitLimits: WaitLimits,
  waitedMs: number,
): boolean {
  return (
    (keyMs !== null && waitedMs + keyMs <= waitLimits.keyMs) ||
    (breakerMs !== null && waitedMs + breakerMs <= waitLimits.breakerMs)
  );
}

/** Returns the name of the queue for calls with the same candidates and of the same class. */
export function queueNameOf(candidates: readonly RouteCandidate[], callClass: CallClass): string {
  return `${nameCandidates(candidates)}\n${callClass}`;
}

function nameCandidates(candidates: readonly RouteCandidate[]): string {
  return candidates
    .map(({ route, fingerprint }) => `${route.id} ${fingerprint}`)
    .sort()
    .join('\n');
}
