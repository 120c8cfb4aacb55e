import { LRUCache } from 'lru-cache';
import type { ErrorCode } from '../../shared/contract/error-kinds.ts';
import { AppError } from '../../shared/contract/errors.ts';
import { holderOf } from './authenticate.ts';
import type { ApiMiddleware } from './request-context.ts';

/** Long enough to remember a caller that keeps trying, short enough to forget one that has refilled its balance. */
const rememberedMs = 10_000;
const maxAccounts = 50_000;

/** What only an admission, or counting, finds out. */
const codes: ReadonlySet<ErrorCode> = new Set([
  'account_banned',
  'rate_limit_exceeded',
  'insufficient_balance',
  'content_too_long',
]);

/** Accounts that this process has refused a moment ago after work for nothing: they are likely to be refused again. */
export class RecentRefusals {
  readonly #accounts = new LRUCache<string, true>({ max: maxAccounts, ttl: rememberedMs });

  /** @param error what a request of the account ended with */
  note(accountId: string, error: unknown): void {
    if (error instanceof AppError && codes.has(error.code)) this.#accounts.set(accountId, true);
  }

  has(accountId: string): boolean {
    return this.#accounts.has(accountId);
  }
}

/** The step of operations that ask a model: refusals of other calls say nothing about the next chat. */
export function noteRefusals(refusals: RecentRefusals): ApiMiddleware {
  return async (context, next) => {
    try {
      await next();
    } catch (error) {
      refusals.note(holderOf(context).accountId, error);
      throw error;
    }
  };
}
