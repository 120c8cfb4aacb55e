// decision 0033
import { createRecentEntries } from '../../shared/platform/runtime/recent-entries.ts';
import type { ErrorCode } from '../../shared/contract/error-kinds.ts';
import { AppError } from '../../shared/contract/errors.ts';

/**
 * Long enough to cover the interval at which clients retry. Short enough that the extra check stops soon after an
 * account has refilled its balance.
 */
const rejectionTtlMs = 10_000;
const maxAccounts = 50_000;

/** Errors that are detected only by tokenizing the request or at admission. */
const codes: ReadonlySet<ErrorCode> = new Set([
  'account_banned',
  'rate_limit_exceeded',
  'insufficient_balance',
  'budget_exceeded',
  'key_expired',
  'address_not_allowed',
  'content_too_long',
  'context_length_exceeded',
]);

/**
 * Tracks accounts that had a request rejected by this process in the last few seconds, after time was spent on reading
 * or tokenizing it. Their next requests will likely be rejected too.
 */
export class RecentRejections {
  readonly #accounts = createRecentEntries<string, true>(maxAccounts, rejectionTtlMs);

  /** @param error the error of a request of the account */
  note(accountId: string, error: unknown): void {
    if (error instanceof AppError && codes.has(error.code)) this.#accounts.set(accountId, true);
  }

  has(accountId: string): boolean {
    return this.#accounts.has(accountId);
  }
}
