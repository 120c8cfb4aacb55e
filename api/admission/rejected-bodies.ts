// decision 0033
import { setTimeout as delay } from 'node:timers/promises';
import { AppError } from '../../shared/contract/errors.ts';
import { RecentUse } from '../../shared/fairness/recent-use.ts';
import type { Logger } from '../../shared/platform/runtime/logger.ts';
import { createThrottledWarning } from '../../shared/platform/runtime/throttled-warning.ts';

/** How much of an account's bodies may be rejected in the long run, in bytes per millisecond: 4 MB/s. */
const bytesPerMs = 4_000;
/** How much may be rejected at once, in milliseconds at that rate: 32 MB. */
const burstMs = 8_000;
/** How long a body waits before it is rejected. No account has to make up for more. */
const defaultMaxWaitMs = 15_000;
/** By this much a timer may be early. A body that waits as long as any has to is not rejected for it. */
const timerMs = 20;

const ignore = (): void => undefined;

export interface RejectedBodiesOptions {
  readonly log: Pick<Logger, 'warn'>;
  /** For tests, like the clock in milliseconds. */
  readonly maxWaitMs?: number;
  readonly nowMs?: () => number;
}

/**
 * Limits the large bodies that an account sends for nothing. Reading, storing and checking one takes processor time of
 * the api, Redis and a worker, and if its request is then rejected, for example because of an image in it, it costs its
 * sender nothing. An account whose recent large requests were rejected waits with its next large body until the time
 * since then makes up for them. What it has to make up for is kept in milliseconds at the allowed rate.
 */
export class RejectedBodies {
  readonly #recent: RecentUse;
  /** Ends when the last body of the account that waits has stopped waiting. */
  readonly #lastOf = new Map<string, Promise<void>>();
  readonly #maxWaitMs: number;
  readonly #nowMs: () => number;
  readonly #warn: (line: string, fields: object) => void;

  constructor({ log, maxWaitMs = defaultMaxWaitMs, nowMs = () => performance.now() }: RejectedBodiesOptions) {
    this.#maxWaitMs = maxWaitMs;
    this.#nowMs = nowMs;
    this.#recent = new RecentUse({ decayRate: 1, maxUseMs: burstMs + maxWaitMs, nowMs });
    this.#warn = createThrottledWarning((line, fields) => log.warn(fields, line));
  }

  /**
   * Waits until the account may send a large body. Of those that wait, one continues at a time, because whether its
   * request is rejected is known only afterwards: until then, its bytes count as rejected.
   * @returns the bytes that count as rejected, for `add`
   * @throws AppError `rate_limit_exceeded` if that takes too long; the signal's reason when it is aborted
   */
  async waitToSend(accountId: string, bytes: number, signal: AbortSignal): Promise<number> {
    if (this.#excessMs(accountId) <= 0 && !this.#lastOf.has(accountId)) return 0;
    this.#warn('large bodies of an account wait, because its last ones were refused', {
      account_id: accountId,
    });
    const untilMs = this.#nowMs() + this.#maxWaitMs;
    const waiting = (this.#lastOf.get(accountId) ?? Promise.resolve()).then(() =>
      this.#wait(accountId, bytes, untilMs, signal),
    );
    const ended = waiting.then(ignore, ignore);
    this.#lastOf.set(accountId, ended);
    try {
      return await waiting;
    } finally {
      if (this.#lastOf.get(accountId) === ended) this.#lastOf.delete(accountId);
    }
  }

  /** Waits as the first in line. */
  async #wait(accountId: string, bytes: number, untilMs: number, signal: AbortSignal): Promise<number> {
    signal.throwIfAborted();
    for (let waitMs = this.#excessMs(accountId); waitMs > 0; waitMs = this.#excessMs(accountId)) {
      if (this.#nowMs() + waitMs > untilMs + timerMs) throw createError(waitMs);
      await delay(Math.ceil(waitMs), undefined, { signal }).catch(() => signal.throwIfAborted());
    }
    this.add(accountId, bytes);
    return bytes;
  }

  /** Records that a request of the account was rejected after this much of its body had been read. */
  add(accountId: string, bytes: number): void {
    this.#recent.add(accountId, bytes / bytesPerMs);
  }

  /** How long it takes until the account may send a large body (ms); not above 0 if it may. */
  #excessMs(accountId: string): number {
    return this.#recent.of(accountId) - burstMs;
  }
}

function createError(waitMs: number): AppError {
  const seconds = Math.max(1, Math.ceil(waitMs / 1_000));
  return new AppError('rate_limit_exceeded', {
    message: `Your recent large requests were rejected, and more of them are waiting. Fix the errors returned for them, and try again in ${seconds} s.`,
    headers: { 'retry-after': String(seconds) },
  });
}
