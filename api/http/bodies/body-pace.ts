import { AppError } from '../../../shared/contract/errors.ts';

/**
 * Maximum size of a small body. A larger one is read only after its account has been checked, and takes its memory from
 * the budget for request bodies.
 */
export const smallBodyBytes = 64 * 1024;

/** Status for a body that arrives too slowly or not at all. The rest of such a body is not drained. */
export const lateStatus = 408;

/**
 * Minimum rate of a large body. Such a body occupies memory that others need, so a client must not be able to prolong
 * it by sending an occasional byte.
 */
const minBytesPerSecond = 32 * 1024;

/**
 * Part of the time during which this process was busy that does not count against a large body: its bytes may have
 * waited for the process to read them. Not all of that time, because a slow body would otherwise keep its memory for as
 * long as the process is busy.
 */
const busyCredit = 3 / 4;

export interface BodyTimes {
  /** Time limit for a small body, which arrives in one or two chunks. */
  readonly smallMs: number;
  /** Maximum time between two chunks of a large body. Longer pauses are typical of silently broken connections. */
  readonly stallMs: number;
  /** Time before the minimum rate applies, so that a connection can reach its speed. */
  readonly graceMs: number;
}

export const defaultBodyTimes: BodyTimes = { smallMs: 30_000, stallMs: 30_000, graceMs: 5_000 };

/** Returns the maximum time for a body of this length (ms). */
export function maxBodyMs(length: number, { smallMs, graceMs } = defaultBodyTimes): number {
  return Math.ceil(Math.max(smallMs, graceMs + (length / minBytesPerSecond) * 1_000));
}

/** Fails a body that arrives too slowly. The time starts at construction, so a body that never starts fails too. */
export class BodyPace {
  readonly #isLarge: () => boolean;
  readonly #fail: (error: AppError) => void;
  readonly #times: BodyTimes;
  readonly #startedUse = performance.eventLoopUtilization();
  #startedAtMs = performance.now();
  #lastChunkAtMs = this.#startedAtMs;
  #length = 0;
  #timer: NodeJS.Timeout;

  /** @param fail called once, when the body is too slow */
  constructor(isLarge: () => boolean, times: BodyTimes, fail: (error: AppError) => void) {
    this.#isLarge = isLarge;
    this.#times = times;
    this.#fail = fail;
    // Check before a small body's time is up, because it may turn out to be large, and a large body has less time.
    this.#timer = setTimeout(() => this.#check(), times.graceMs);
  }

  add(bytes: number): void {
    this.#length += bytes;
    this.#lastChunkAtMs = performance.now();
  }

  /** Extends the time limit by the time during which this process paused reading. */
  exclude(pausedMs: number): void {
    this.#startedAtMs += pausedMs;
    this.#lastChunkAtMs += pausedMs;
  }

  stop(): void {
    clearTimeout(this.#timer);
  }

  #check(): void {
    const remainingMs = this.#findRemainingMs();
    if (remainingMs <= 0) this.#fail(this.#describe());
    else this.#timer = setTimeout(() => this.#check(), Math.min(Math.ceil(remainingMs), this.#times.graceMs));
  }

  #findRemainingMs(): number {
    const dueAtMs = this.#isLarge() ? Math.min(this.#stallsAtMs(), this.#slowAtMs()) : this.#slowAtMs();
    return dueAtMs - performance.now();
  }

  #stallsAtMs(): number {
    return this.#lastChunkAtMs + this.#times.stallMs;
  }

  #slowAtMs(): number {
    const { smallMs, graceMs } = this.#times;
    if (!this.#isLarge()) return this.#startedAtMs + smallMs;
    const busyMs = performance.eventLoopUtilization(this.#startedUse).active;
    return this.#startedAtMs + graceMs + (this.#length / minBytesPerSecond) * 1_000 + busyCredit * busyMs;
  }

  #describe(): AppError {
    const { smallMs, stallMs } = this.#times;
    if (!this.#isLarge())
      return late(`The body was not received within ${smallMs / 1_000} s. Send the whole request again.`);
    if (this.#stallsAtMs() < this.#slowAtMs())
      return late(`No more of the body was received for ${stallMs / 1_000} s. Send the whole request again.`);
    const rate = minBytesPerSecond / 1024;
    return late(
      `The body arrives at less than ${rate} KB per second. Use a faster connection, or send a smaller request.`,
    );
  }
}

const late = (message: string): AppError =>
  new AppError('deadline_exceeded', { status: lateStatus, message });
