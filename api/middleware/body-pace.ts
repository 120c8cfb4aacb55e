import { AppError } from '../../shared/contract/errors.ts';

/** Larger bodies are known, paid for and bounded in sum before they are read. */
export const smallBodyBytes = 64 * 1024;

/** Of a body that comes too slowly, or not at all: nothing more of it is waited for. */
export const lateStatus = 408;

/** What has come of a large body takes memory that others wait for, so a byte now and then does not keep it. */
const leastBytesPerSecond = 32 * 1024;

export interface BodyTimes {
  /** A small body comes in one go or two, so it has this long in all. */
  readonly smallMs: number;
  /** Between two chunks of a large one. A connection that broke without a word looks like this. */
  readonly stallMs: number;
  /** Connections take a moment to reach their speed. */
  readonly graceMs: number;
}

export const defaultBodyTimes: BodyTimes = { smallMs: 30_000, stallMs: 30_000, graceMs: 5_000 };

/** How long a body of this length may take to come. */
export function longestBodyMs(length: number, { smallMs, graceMs } = defaultBodyTimes): number {
  return Math.ceil(Math.max(smallMs, graceMs + (length / leastBytesPerSecond) * 1_000));
}

/** Fails a body that comes too slowly. Its time runs from construction, so a body that never begins is late too. */
export class BodyPace {
  readonly #isLarge: () => boolean;
  readonly #fail: (error: AppError) => void;
  readonly #times: BodyTimes;
  #startedAtMs = performance.now();
  #lastAtMs = this.#startedAtMs;
  #length = 0;
  #timer: NodeJS.Timeout;

  /** @param fail called once, when it is too slow */
  constructor(isLarge: () => boolean, times: BodyTimes, fail: (error: AppError) => void) {
    this.#isLarge = isLarge;
    this.#times = times;
    this.#fail = fail;
    // A small body may turn out to be large, and is then due sooner.
    this.#timer = setTimeout(() => this.#check(), times.graceMs);
  }

  add(bytes: number): void {
    this.#length += bytes;
    this.#lastAtMs = performance.now();
  }

  /** Leaves out a time in which we did not read. */
  exclude(heldMs: number): void {
    this.#startedAtMs += heldMs;
    this.#lastAtMs += heldMs;
  }

  stop(): void {
    clearTimeout(this.#timer);
  }

  #check(): void {
    const dueMs = this.#findDueMs();
    if (dueMs <= 0) this.#fail(this.#describe());
    else this.#timer = setTimeout(() => this.#check(), Math.min(Math.ceil(dueMs), this.#times.graceMs));
  }

  /** The time that is left. */
  #findDueMs(): number {
    const dueAtMs = this.#isLarge() ? Math.min(this.#stallsAtMs(), this.#slowAtMs()) : this.#slowAtMs();
    return dueAtMs - performance.now();
  }

  #stallsAtMs(): number {
    return this.#lastAtMs + this.#times.stallMs;
  }

  #slowAtMs(): number {
    const { smallMs, graceMs } = this.#times;
    const allowedMs = this.#isLarge() ? graceMs + (this.#length / leastBytesPerSecond) * 1_000 : smallMs;
    return this.#startedAtMs + allowedMs;
  }

  #describe(): AppError {
    const { smallMs, stallMs } = this.#times;
    if (!this.#isLarge())
      return late(`The body has not come within ${smallMs / 1_000} s. Send it again, whole.`);
    if (this.#stallsAtMs() < this.#slowAtMs())
      return late(`Nothing more of the body has come for ${stallMs / 1_000} s. Send it again, whole.`);
    const rate = leastBytesPerSecond / 1024;
    return late(
      `The body comes at less than ${rate} KB a second. Send it by a faster connection, or less at once.`,
    );
  }
}

const late = (message: string): AppError =>
  new AppError('deadline_exceeded', { status: lateStatus, message });
