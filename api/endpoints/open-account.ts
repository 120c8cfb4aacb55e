import { isSameHash } from '../../shared/accounts/credentials.ts';
import { healKey } from '../../shared/accounts/heal-key.ts';
import { unknownKey } from '../../shared/accounts/unknown-key.ts';
import type { HotAccount } from '../../shared/billing/hot-account-store.ts';
import { AppError } from '../../shared/contract/errors.ts';
import { holderOf } from '../middleware/authenticate.ts';
import type { ApiContext } from '../middleware/request-context.ts';
import type { Services } from '../services.ts';

/**
 * The account of the key that a request carries, in Redis from here on. What needs no admission is opened here: the
 * key is still the account's own, and the account not banned.
 * @throws AppError `invalid_api_key`, `account_banned`
 */
export async function openAccount(services: Services, context: ApiContext): Promise<HotAccount> {
  const holder = holderOf(context);
  const account = await services.hotAccounts.get(holder.accountId);
  if (!isSameHash(account.keyHash, holder.keyHash) && !(await healKey(services, holder))) {
    throw unknownKey();
  }
  if (account.banned) throw new AppError('account_banned');
  return account;
}
