// decision 0105
import { maskSecrets } from '../../shared/contract/mask-secrets.ts';
import { RecentUse } from '../../shared/fairness/recent-use.ts';
import type { Rejection, RejectionStore } from '../../shared/ledger/rejection-store.ts';
import type { ProcessMetrics } from '../../shared/platform/metrics/process-metrics.ts';
import type { Logger } from '../../shared/platform/runtime/logger.ts';
import { shorten } from '../../shared/platform/runtime/shorten.ts';
import { createThrottledWarning } from '../../shared/platform/runtime/throttled-warning.ts';

/** How many rejections are logged at once, and one per how many milliseconds in the long run. */
interface Rate {
  readonly burst: number;
  readonly intervalMs: number;
}

/** For one account and one error code. A client that repeats a request without reading the error learns nothing from more. */
const ratePerCode: Rate = { burst: 20, intervalMs: 10_000 };
/** For one account, over all error codes. */
const ratePerAccount: Rate = { burst: 60, intervalMs: 5_000 };
/**
 * Of the process, for accounts that had several lately: this bounds what MongoDB has to keep. The first few of an account
 * have a share of their own, which nobody else uses up.
 */
const ratePerProcess: Rate = { burst: 200, intervalMs: 500 };
const rateOfFirst: Rate = { burst: 200, intervalMs: 200 };
/** How many of an account count as its first ones. */
const first = 3;
/** What is held while MongoDB does not respond. */
const maxPending = 1_000;
const maxMessageLength = 500;
const defaultFlushMs = 1_000;

export interface RejectionLogOptions {
  readonly store: Pick<RejectionStore, 'insert'>;
  readonly metrics: Pick<ProcessMetrics, 'counter'>;
  readonly log: Pick<Logger, 'warn'>;
  /** For tests, like the clock in milliseconds. */
  readonly flushMs?: number | undefined;
  readonly nowMs?: () => number;
}

/**
 * Logs requests that were rejected before a model was called, so that their senders and operators find out why. Anyone can
 * cause any number of them for nothing, so only some of those that are alike are logged, and all are counted.
 */
export class RejectionLog {
  readonly #store: Pick<RejectionStore, 'insert'>;
  readonly #byCode: Bucket;
  readonly #byAccount: Bucket;
  /** All of an account, logged or not. */
  readonly #seen: Bucket;
  readonly #all: Bucket;
  readonly #ofFirst: Bucket;
  readonly #unlogged;
  readonly #flushMs: number;
  readonly #warn: (line: string, fields: object) => void;
  #pending: Rejection[] = [];
  #timer: NodeJS.Timeout | null = null;
  #flushing: Promise<void> = Promise.resolve();

  constructor({ store, metrics, log, flushMs = defaultFlushMs, nowMs }: RejectionLogOptions) {
    this.#store = store;
    this.#byCode = new Bucket(ratePerCode, nowMs);
    this.#byAccount = new Bucket(ratePerAccount, nowMs);
    this.#seen = new Bucket(ratePerAccount, nowMs);
    this.#all = new Bucket(ratePerProcess, nowMs);
    this.#ofFirst = new Bucket(rateOfFirst, nowMs);
    this.#flushMs = flushMs;
    this.#warn = createThrottledWarning((line, fields) => log.warn(fields, line));
    this.#unlogged = metrics.counter(
      {
        name: 'rejections_unlogged_total',
        help: 'Rejected requests that are not in the list of rejected requests. `reason`: alike, of one account; process, of all; unwritten, because MongoDB did not respond.',
      },
      ['reason'],
    );
  }

  /** Takes a rejection, to be written within a second. */
  note(rejection: Rejection): void {
    const kind = `${rejection.accountId} ${rejection.code}`;
    const { accountId } = rejection;
    const isFirst = this.#seen.countTaken(accountId) < first;
    this.#seen.take(accountId);
    if (!this.#byCode.has(kind) || !this.#byAccount.has(accountId)) {
      this.#unlogged.inc({ reason: 'alike' });
      return;
    }
    const ofProcess = isFirst && this.#ofFirst.has('') ? this.#ofFirst : this.#all;
    if (!ofProcess.has('')) {
      this.#unlogged.inc({ reason: 'process' });
      return;
    }
    if (this.#pending.length >= maxPending) {
      this.#pending.shift();
      this.#unlogged.inc({ reason: 'unwritten' });
    }
    this.#byCode.take(kind);
    this.#byAccount.take(accountId);
    ofProcess.take('');
    this.#pending.push({ ...rejection, message: shorten(maskSecrets(rejection.message), maxMessageLength) });
    this.#flushSoon();
  }

  /** Writes what is left. */
  async close(): Promise<void> {
    if (this.#timer !== null) clearTimeout(this.#timer);
    await this.#flushing;
    await this.#flush();
    if (this.#timer !== null) clearTimeout(this.#timer);
  }

  #flushSoon(): void {
    if (this.#timer !== null) return;
    this.#timer = setTimeout(() => {
      this.#flushing = this.#flush();
    }, this.#flushMs);
    this.#timer.unref();
  }

  async #flush(): Promise<void> {
    const rejections = this.#pending;
    if (rejections.length > 0) {
      this.#pending = [];
      try {
        await this.#store.insert(rejections);
      } catch (error) {
        this.#warn('rejected requests are not logged', { err: error, count: rejections.length });
        // The newest of all are held.
        const held = [...rejections, ...this.#pending];
        this.#pending = held.slice(-maxPending);
        this.#unlogged.inc({ reason: 'unwritten' }, held.length - this.#pending.length);
      }
    }
    this.#timer = null;
    if (this.#pending.length > 0) this.#flushSoon();
  }
}

/** Says who may do something once more. */
class Bucket {
  readonly #recent: RecentUse;
  readonly #intervalMs: number;
  readonly #maxMs: number;

  constructor({ burst, intervalMs }: Rate, nowMs?: () => number) {
    this.#intervalMs = intervalMs;
    this.#maxMs = burst * intervalMs;
    this.#recent = new RecentUse({ decayRate: 1, maxUseMs: this.#maxMs, nowMs });
  }

  has(holder: string): boolean {
    return this.#recent.of(holder) <= this.#maxMs - this.#intervalMs;
  }

  /** How many were taken lately, as far as time has not made up for them. */
  countTaken(holder: string): number {
    return Math.ceil(this.#recent.of(holder) / this.#intervalMs);
  }

  take(holder: string): void {
    this.#recent.add(holder, this.#intervalMs);
  }
}
