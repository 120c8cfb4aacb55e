import { LRUCache } from 'lru-cache';
import type { ErrorCode } from '../../shared/contract/error-kinds.ts';
import { AppError } from '../../shared/contract/errors.ts';

/**
 * Long enough to cover a client that keeps retrying, short enough that a client that has refilled its balance soon
 * avoids the extra check.
 */
const refusalTtlMs = 10_000;
const maxAccounts = 50_000;

/** Errors that are detected only by tokenizing the request or at admission. */
const codes: ReadonlySet<ErrorCode> = new Set([
  'account_banned',
  'rate_limit_exceeded',
  'insufficient_balance',
  'content_too_long',
]);

/**
 * Tracks accounts whose requests this process rejected in the last few seconds after wasting work on them. Their next
 * requests will likely be rejected too.
 */
export class RecentRefusals {
  readonly #accounts = new LRUCache<string, true>({ max: maxAccounts, ttl: refusalTtlMs });

  /** @param error the error of a request of the account */
  note(accountId: string, error: unknown): void {
    if (error instanceof AppError && codes.has(error.code)) this.#accounts.set(accountId, true);
  }

  has(accountId: string): boolean {
    return this.#accounts.has(accountId);
  }
}
