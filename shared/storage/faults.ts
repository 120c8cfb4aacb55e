import { AppError } from '../contract/errors.ts';
import { isRedisAway } from '../redis/redis-client.ts';
import { replyCode } from '../redis/reply-code.ts';
import type { Logger } from '../runtime/logger.ts';
import { explainStoreFailure } from './explain-store-failure.ts';
import { isDuplicateKey, isMongoAway, isMongoError } from './mongo-client.ts';

/** A part that several processes take in turns fails again whenever it comes back to this one. */
const repeatAfterMs = 10 * 60_000;

/** What the engine throws at a program that is wrong. A driver never reports an outage by one of these. */
const programErrors = [TypeError, SyntaxError, RangeError, ReferenceError];

/**
 * Whether a failure passes by itself: a store is away for a while, or another process was quicker. Any other stays until
 * somebody mends it.
 */
export function passesByItself(error: unknown): boolean {
  if (error instanceof AppError && error.cause !== undefined) return passesByItself(error.cause);
  if (isMongoError(error)) return isMongoAway(error) || isDuplicateKey(error);
  // A transaction whose commands were refused. Their own replies say why.
  if (replyCode(error) === 'EXECABORT') return readPreviousErrors(error).every(passesByItself);
  if (replyCode(error) !== null) return isRedisAway(error);
  return !programErrors.some((kind) => error instanceof kind);
}

function readPreviousErrors(error: unknown): readonly unknown[] {
  const { previousErrors } = error as { readonly previousErrors?: unknown };
  return Array.isArray(previousErrors) ? previousErrors : [];
}

/**
 * The failures of a process's loops that do not pass by themselves: a missing right, a command that Redis does not know,
 * an error in the program. Each is logged once until it has passed. An outage is none: clients log it, and loops wait.
 */
export class Faults {
  readonly #log: Logger;
  /** By the part that fails: why. */
  readonly #reasons = new Map<string, string>();
  /** By part: what was last logged of it. */
  readonly #logged = new Map<string, { readonly reason: string; readonly atMs: number }>();

  constructor(log: Logger) {
    this.#log = log;
  }

  /** How many parts fail now. */
  get count(): number {
    return this.#reasons.size;
  }

  /** @param part such as `taking chats` */
  note(part: string, error: unknown): void {
    if (passesByItself(error)) {
      this.#log.debug({ part, err: error }, 'waiting for a store');
      return;
    }
    this.#fail(part, explainStoreFailure(error), { err: error });
  }

  /** @param reason what is wrong and what to do, for a failure that is no error of a store */
  fail(part: string, reason: string): void {
    this.#fail(part, reason, {});
  }

  /** Call this whenever the part has worked. */
  clear(part: string): void {
    if (!this.#reasons.delete(part)) return;
    this.#logged.delete(part);
    this.#log.info({ part }, `${part} works again`);
  }

  /** The part is another process's now. */
  forget(part: string): void {
    this.#reasons.delete(part);
  }

  #fail(part: string, reason: string, facts: object): void {
    if (this.#reasons.get(part) === reason) return;
    this.#reasons.set(part, reason);
    const nowMs = performance.now();
    const last = this.#logged.get(part);
    if (last?.reason === reason && nowMs - last.atMs < repeatAfterMs) return;
    this.#logged.set(part, { reason, atMs: nowMs });
    this.#log.error({ part, ...facts }, `${part} fails until this is mended: ${reason}`);
  }
}
