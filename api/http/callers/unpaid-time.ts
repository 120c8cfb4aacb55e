// decision 0071
import { AppError } from '../../../shared/contract/errors.ts';
import { FairQueue, type QueueEntry } from '../../../shared/fairness/fair-queue.ts';
import { RecentUse } from '../../../shared/fairness/recent-use.ts';
import { createThrottledWarning } from '../../../shared/platform/runtime/throttled-warning.ts';
import type { Logger } from '../../../shared/platform/runtime/logger.ts';

/** Part of an api process's time that the unpaid calls of one network may use, and those of all networks together. */
const networkShare = 1 / 4;
const totalShare = 1 / 2;
/** How much time they may use in one go before the shares apply, in milliseconds. */
const burstMs = { network: 250, total: 500 };
/**
 * The most that a network has to make up for. A process that was suspended in the middle of a call, or built a page for
 * the first time on a busy machine, must not lock out that call's network: its next call waits, and is not rejected.
 */
const maxUseMs = 3_000;
/** How long a call waits for its network's share before it is rejected. */
const defaultMaxWaitMs = 15_000;
/** How often to check whether a waiting call may run. */
const pollMs = 10;

const allNetworks = '';

interface PendingCall {
  readonly run: () => void;
}

export interface UnpaidTimeOptions {
  readonly log: Pick<Logger, 'warn'>;
  /** For tests, like the clock in milliseconds. */
  readonly maxWaitMs?: number;
  readonly nowMs?: () => number;
}

/** A call that waits for its network's share of the time. */
export interface UnpaidCall {
  readonly network: string;
  /** Operations of a network take turns, so that a health check does not wait behind a flood of other calls. */
  readonly operation: string;
  readonly signal: AbortSignal;
}

/**
 * Bounds the event-loop time of unpaid calls: those without a key, and those of accounts without money. The time of each
 * is measured and added to its network. A network that has used up its share waits until its use has decayed, and so do
 * all of them once they have used up theirs together; networks then take turns. A single piece of work cannot be
 * interrupted, but the longer it was, the longer its network waits.
 */
export class UnpaidTime {
  readonly #log: Pick<Logger, 'warn'>;
  readonly #maxWaitMs: number;
  readonly #nowMs: () => number;
  readonly #byNetwork: RecentUse;
  readonly #total: RecentUse;
  /** Calls that wait, by network and operation. The network whose turn it is comes first. */
  readonly #waiting = new Map<string, FairQueue<PendingCall>>();
  readonly #warn: (line: string, fields: object) => void;
  /** Until then, the share of some network may be used up. */
  #strainedUntilMs = -Infinity;
  #waitingCount = 0;
  #isServing = false;

  constructor({ log, maxWaitMs = defaultMaxWaitMs, nowMs }: UnpaidTimeOptions) {
    this.#log = log;
    this.#maxWaitMs = maxWaitMs;
    this.#nowMs = nowMs ?? (() => performance.now());
    this.#byNetwork = new RecentUse({ decayRate: networkShare, maxUseMs, nowMs });
    this.#total = new RecentUse({ decayRate: totalShare, maxUseMs, nowMs });
    this.#warn = createThrottledWarning((line, fields) => this.#log.warn(fields, line));
  }

  /** Whether any network may have used up its share. If not, no call needs to wait. */
  get isStrained(): boolean {
    return this.#strainedUntilMs > 0 && this.#nowMs() < this.#strainedUntilMs;
  }

  get waiting(): number {
    return this.#waitingCount;
  }

  /** Records that an unpaid call has used this much of the process's time. */
  add(network: string, ms: number): void {
    this.#byNetwork.add(network, ms);
    this.#total.add(allNetworks, ms);
    const strainedMs = this.#findStrainedMs(network);
    if (strainedMs > 0) this.#strainedUntilMs = Math.max(this.#strainedUntilMs, this.#nowMs() + strainedMs);
  }

  /**
   * Waits until the network may use more time.
   * @throws AppError `rate_limit_exceeded` if that takes too long; the signal's reason when it is aborted
   */
  async acquire(call: UnpaidCall): Promise<void> {
    const { network, signal } = call;
    signal.throwIfAborted();
    if (!this.#waiting.has(network) && this.#hasTimeFor(network) && !this.#isTotalContested()) return;
    this.#warn('unpaid calls wait for their share of time', { network, waiting: this.waiting + 1 });
    await this.#wait(call);
  }

  async #wait({ network, operation, signal }: UnpaidCall): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      this.#waitingCount += 1;
      const stopWaiting = (): void => {
        this.#waitingCount -= 1;
        clearTimeout(timer);
        signal.removeEventListener('abort', onAbort);
      };
      const fail = (error: unknown): void => {
        stopWaiting();
        this.#remove(network, entry);
        reject(error);
      };
      const onAbort = (): void => fail(signal.reason);
      const timer = setTimeout(() => fail(this.#createError(network)), this.#maxWaitMs);
      signal.addEventListener('abort', onAbort, { once: true });
      const entry = this.#queueOf(network).add(operation, {
        run: () => {
          stopWaiting();
          resolve();
        },
      });
      this.#serveLater(pollMs);
    });
  }

  #queueOf(network: string): FairQueue<PendingCall> {
    let queue = this.#waiting.get(network);
    if (queue === undefined) {
      queue = new FairQueue();
      this.#waiting.set(network, queue);
    }
    return queue;
  }

  #remove(network: string, entry: QueueEntry<PendingCall>): void {
    const queue = this.#waiting.get(network);
    queue?.remove(entry);
    if (queue?.size === 0) this.#waiting.delete(network);
  }

  /** Returns how long it takes until the network has made up for what it used (ms); not above 0 if it has. */
  #findStrainedMs(network: string): number {
    return Math.max(
      (this.#byNetwork.of(network) - burstMs.network) / networkShare,
      (this.#total.of(allNetworks) - burstMs.total) / totalShare,
    );
  }

  #hasTimeFor(network: string): boolean {
    return this.#isTotalFree() && this.#byNetwork.of(network) < burstMs.network;
  }

  #isTotalFree(): boolean {
    return this.#total.of(allNetworks) < burstMs.total;
  }

  /** Whether calls of other networks wait that would wait longer if this one ran now. */
  #isTotalContested(): boolean {
    return this.#waiting.size > 0 && this.#total.of(allNetworks) > burstMs.total / 2;
  }

  /** Lets one waiting call run. The next one follows only when the time that this one takes is known. */
  #serve(): void {
    this.#isServing = false;
    const network = this.#isTotalFree() ? this.#findNext() : null;
    if (network !== null) {
      const queue = this.#waiting.get(network)!;
      queue.serve(queue.peek()!).run();
      // Its next call comes after those of the other networks.
      this.#waiting.delete(network);
      if (queue.size > 0) this.#waiting.set(network, queue);
    }
    if (this.#waiting.size > 0) this.#serveLater(network === null ? pollMs : 0);
  }

  #findNext(): string | null {
    for (const network of this.#waiting.keys())
      if (this.#byNetwork.of(network) < burstMs.network) return network;
    return null;
  }

  #serveLater(ms: number): void {
    if (this.#isServing) return;
    this.#isServing = true;
    const serve = (): void => this.#serve();
    if (ms === 0) setImmediate(serve);
    else setTimeout(serve, ms);
  }

  #createError(network: string): AppError {
    const seconds = Math.max(1, Math.ceil(this.#findStrainedMs(network) / 1_000));
    return new AppError('rate_limit_exceeded', {
      message: `Your network sends too many requests without a valid API key or without a balance. Send fewer, and try again in ${seconds} s.`,
      headers: { 'retry-after': String(seconds) },
    });
  }
}
