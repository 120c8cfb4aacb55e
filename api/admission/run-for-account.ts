// decision 0043
import { healKey } from './heal-key.ts';
import { unknownKey } from '../../shared/accounts/unknown-key.ts';
import type { AccountRejection } from '../../shared/money/account-rejection.ts';
import type { RateLimit } from '../../shared/money/rate-window.ts';
import { AppError, retryAfter } from '../../shared/contract/errors.ts';
import type { AccountHolder } from '../http/request/holder.ts';
import { waitForLookUp } from '../../shared/platform/storage/wait-for-look-up.ts';
import { callRedis } from '../../shared/platform/redis/redis-client.ts';
import type { Services } from '../services.ts';
import { addressNotAllowed, formatReset, keyExpired, tokensLimited } from './restriction-errors.ts';

/**
 * Runs a script that needs the account and its key in Redis. If the account is not in Redis, loads it from MongoDB and
 * runs the script again. If Redis has another key for the account, looks up the caller's key in MongoDB, and runs the
 * script again if that key is valid.
 */
export async function runForAccount<T extends { readonly outcome: string }>(
  services: Services,
  holder: AccountHolder,
  runScript: () => Promise<T>,
): Promise<T> {
  const result = await callRedis(runScript);
  switch (result.outcome) {
    case 'unknown':
      await waitForLookUp(
        services.accountWaitMs,
        'loading an account',
        services.hotAccounts.load(holder.accountId),
      );
      return await callRedis(runScript);
    case 'revoked':
      if (holder.keyHash === null) return result;
      return (await waitForLookUp(
        services.accountWaitMs,
        'looking up a replaced key',
        healKey(services, holder),
      ))
        ? await callRedis(runScript)
        : result;
    default:
      return result;
  }
}

/** @param address of the caller */
export async function toAccountError(
  { apiKeys }: Services,
  { keyHash }: AccountHolder,
  rejection: AccountRejection,
  address: string,
): Promise<AppError> {
  switch (rejection.outcome) {
    case 'unknown':
    case 'revoked':
      if (keyHash !== null) await apiKeys.forget(keyHash);
      return unknownKey();
    case 'banned':
      return new AppError('account_banned');
    case 'expired':
      return keyExpired(rejection.expiredAt);
    case 'address_refused':
      return addressNotAllowed(address);
    case 'tokens_limited':
      return tokensLimited(rejection.tokens);
    case 'rate_limited': {
      const headers = retryAfter(rejection.retryAfterMs);
      return new AppError('rate_limit_exceeded', {
        message: `The limit of ${rejection.rateLimit.limit} requests per minute has been reached. Try again in ${headers['retry-after']} s.`,
        headers,
      });
    }
    default:
      return rejection satisfies never;
  }
}

export function describeRateLimit({ limit, remaining, resetSeconds }: RateLimit): Record<string, string> {
  return {
    'x-ratelimit-limit-requests': String(limit),
    'x-ratelimit-remaining-requests': String(Math.max(0, remaining)),
    'x-ratelimit-reset-requests': formatReset(resetSeconds),
  };
}
