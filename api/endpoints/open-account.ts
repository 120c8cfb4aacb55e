import { isSameHash } from '../../shared/accounts/credentials.ts';
import type { KeyHolder } from '../../shared/accounts/api-key-store.ts';
import { healKey } from '../../shared/accounts/heal-key.ts';
import { unknownKey } from '../../shared/accounts/unknown-key.ts';
import type { HotAccount } from '../../shared/billing/hot-account-store.ts';
import { AppError } from '../../shared/contract/errors.ts';
import { waitForLookUp } from '../../shared/runtime/within.ts';
import { holderOf } from '../middleware/authenticate.ts';
import type { ApiContext } from '../middleware/request-context.ts';
import type { Services } from '../services.ts';

/** Finds the account that a request is about. It belongs to the caller and is not banned. */
export type OpenAccount = (services: Services, context: ApiContext) => Promise<HotAccount>;

/**
 * The account of the key that a request carries, in Redis from here on. What needs no admission is opened here: the
 * key is still the account's own, and the account not banned.
 * @throws AppError `invalid_api_key`, `account_banned`; `service_unavailable` where it cannot be loaded in time
 */
export async function openAccount(services: Services, context: ApiContext): Promise<HotAccount> {
  const opening = openOwn(services, holderOf(context));
  const account = await waitForLookUp(services.accountWaitMs, 'opening an account', opening);
  if (account.banned) throw new AppError('account_banned');
  return account;
}

async function openOwn(services: Services, holder: KeyHolder): Promise<HotAccount> {
  const account = await services.hotAccounts.get(holder.accountId);
  const isOwn = isSameHash(account.keyHash, holder.keyHash) || (await healKey(services, holder));
  if (!isOwn) throw unknownKey();
  return account;
}
