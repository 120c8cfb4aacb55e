import { isSameHash } from '../../shared/accounts/credentials.ts';
import { healKey } from '../../shared/accounts/heal-key.ts';
import { unknownKey } from '../../shared/accounts/unknown-key.ts';
import type { HotAccount } from '../../shared/billing/hot-account-store.ts';
import { AppError } from '../../shared/contract/errors.ts';
import { waitForMongo } from '../../shared/storage/mongo-wait.ts';
import { holderOf } from '../middleware/authenticate.ts';
import type { ApiContext } from '../middleware/request-context.ts';
import type { Services } from '../services.ts';

/**
 * The account of the key that a request carries, in Redis from here on. What needs no admission is opened here: the
 * key is still the account's own, and the account not banned.
 * @throws AppError `invalid_api_key`, `account_banned`; `service_unavailable` where it cannot be loaded in time
 */
export async function openAccount(services: Services, context: ApiContext): Promise<HotAccount> {
  const holder = holderOf(context);
  const { hotAccounts, accountWaitMs } = services;
  const account = await waitForMongo(hotAccounts.get(holder.accountId), accountWaitMs);
  const isOwn =
    isSameHash(account.keyHash, holder.keyHash) ||
    (await waitForMongo(healKey(services, holder), accountWaitMs));
  if (!isOwn) throw unknownKey();
  if (account.banned) throw new AppError('account_banned');
  return account;
}
