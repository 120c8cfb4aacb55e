import { type AppError, invalidField } from '../../shared/contract/errors.ts';

/** Larger bodies are known, paid for and bounded in sum before they are read; smaller ones cost next to nothing. */
export const smallBodyBytes = 64 * 1024;

/** A small body comes in one go or two. */
const smallBodyMs = 30_000;
/** A connection that broke without a word looks like this. */
const maxStallMs = 30_000;
/** What has come of a large body takes memory that others wait for, so a byte now and then does not keep it. */
const leastBytesPerSecond = 32 * 1024;
/** Connections take a moment to reach their speed. */
const graceMs = 5_000;

/** How long a body of this length may take to come. */
export function longestBodyMs(length: number): number {
  return Math.max(smallBodyMs, graceMs + (length / leastBytesPerSecond) * 1_000);
}

/** Whether a body comes quickly enough. Runs from its making, so a body that never begins is late as well. */
export class BodyPace {
  readonly #isLarge: () => boolean;
  readonly #fail: (error: AppError) => void;
  #startedAtMs = performance.now();
  #lastAtMs = this.#startedAtMs;
  #length = 0;
  #timer: NodeJS.Timeout;

  /** @param fail called once, when it is too slow */
  constructor(isLarge: () => boolean, fail: (error: AppError) => void) {
    this.#isLarge = isLarge;
    this.#fail = fail;
    // A small body may turn out to be large, and is then due sooner.
    this.#timer = setTimeout(() => this.#check(), graceMs);
  }

  add(bytes: number): void {
    this.#length += bytes;
    this.#lastAtMs = performance.now();
  }

  /** For so long it was us who did not read. */
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
    else this.#timer = setTimeout(() => this.#check(), Math.min(Math.ceil(dueMs), graceMs));
  }

  /** The time that is left. */
  #findDueMs(): number {
    const dueAtMs = this.#isLarge() ? Math.min(this.#stallsAtMs(), this.#slowAtMs()) : this.#slowAtMs();
    return dueAtMs - performance.now();
  }

  #stallsAtMs(): number {
    return this.#lastAtMs + maxStallMs;
  }

  #slowAtMs(): number {
    const allowedMs = this.#isLarge() ? graceMs + (this.#length / leastBytesPerSecond) * 1_000 : smallBodyMs;
    return this.#startedAtMs + allowedMs;
  }

  #describe(): AppError {
    if (!this.#isLarge()) {
      const seconds = smallBodyMs / 1_000;
      return invalidField(['body'], `The body has not come within ${seconds} s. Send it again, whole.`);
    }
    if (this.#stallsAtMs() < this.#slowAtMs()) {
      const seconds = maxStallMs / 1_000;
      return invalidField(
        ['body'],
        `Nothing more of the body has come for ${seconds} s. Send it again, whole.`,
      );
    }
    const rate = leastBytesPerSecond / 1024;
    return invalidField(
      ['body'],
      `The body comes at less than ${rate} KB a second. Send it by a faster connection, or less at once.`,
    );
  }
}
