// decision 0062
import mongoose from 'mongoose';
import { AppError } from '../../shared/contract/errors.ts';
import { isRedisUnavailable } from '../../shared/platform/redis/redis-client.ts';
import { replyCode } from '../../shared/platform/redis/reply-code.ts';
import type { Logger } from '../../shared/platform/runtime/logger.ts';
import { explainStoreFailure } from './explain-store-failure.ts';
import {
  isDuplicateKey,
  isMongoUnavailable,
  isMongoError,
} from '../../shared/platform/storage/mongo-client.ts';

/**
 * Minimum interval between two log lines with the same reason. A part that moves between processes fails again each
 * time it returns to this one.
 */
const repeatAfterMs = 10 * 60_000;

/**
 * Errors thrown because of a bug: by the engine, or for a value that MongoDB cannot store. Outages never cause them.
 */
const programErrors = [TypeError, SyntaxError, RangeError, ReferenceError, mongoose.mongo.BSON.BSONError];

/**
 * Whether a failure is temporary: a store is unavailable for a while, or another process did the same first. Any other
 * failure lasts until somebody fixes it.
 */
export function isTemporaryFailure(error: unknown): boolean {
  if (error instanceof AppError)
    return error.cause === undefined ? error.code === 'service_unavailable' : isTemporaryFailure(error.cause);
  if (isMongoError(error)) return isMongoUnavailable(error) || isDuplicateKey(error);
  // A transaction whose commands were rejected. Their replies give the reasons.
  if (replyCode(error) === 'EXECABORT') return readPreviousErrors(error).every(isTemporaryFailure);
  if (replyCode(error) !== null) return isRedisUnavailable(error);
  return !programErrors.some((kind) => error instanceof kind);
}

function readPreviousErrors(error: unknown): readonly unknown[] {
  const { previousErrors } = error as { readonly previousErrors?: unknown };
  return Array.isArray(previousErrors) ? previousErrors : [];
}

/**
 * The permanent failures of a process's loops: a missing permission, a command that Redis does not know, a bug. Each is
 * logged once until it is fixed. Outages are not recorded here: clients log them, and loops wait.
 */
export class Faults {
  readonly #log: Logger;
  /** Failing part → reason. */
  readonly #reasons = new Map<string, string>();
  /** Part → what was last logged about it. */
  readonly #logged = new Map<string, { readonly reason: string; readonly atMs: number }>();

  constructor(log: Logger) {
    this.#log = log;
  }

  /** The number of parts that are failing now. */
  get count(): number {
    return this.#reasons.size;
  }

  /** @param part such as `taking chats` */
  note(part: string, error: unknown): void {
    if (isTemporaryFailure(error)) {
      this.#log.debug({ part, err: error }, 'waiting for a store');
      return;
    }
    this.#fail(part, explainStoreFailure(error), { err: error });
  }

  /** Reports a failure that is not a store's error. @param reason what is wrong and what to do */
  fail(part: string, reason: string): void {
    this.#fail(part, reason, {});
  }

  /** Call this whenever the part has succeeded. */
  clear(part: string): void {
    if (!this.#reasons.delete(part)) return;
    this.#logged.delete(part);
    this.#log.info({ part }, `${part} works again`);
  }

  /** Call this when another process has taken over the part. */
  forget(part: string): void {
    this.#reasons.delete(part);
  }

  #fail(part: string, reason: string, details: object): void {
    if (this.#reasons.get(part) === reason) return;
    this.#reasons.set(part, reason);
    const nowMs = performance.now();
    const last = this.#logged.get(part);
    if (last?.reason === reason && nowMs - last.atMs < repeatAfterMs) return;
    this.#logged.set(part, { reason, atMs: nowMs });
    this.#log.error({ part, ...details }, `${part} fails until this is fixed: ${reason}`);
  }
}
