// decision 0043
import { healKey } from '../../admission/heal-key.ts';
import type { KeyHolder } from '../../../shared/accounts/api-key-store.ts';
import { isSameHash } from '../../../shared/accounts/credentials.ts';
import { unknownKey } from '../../../shared/accounts/unknown-key.ts';
import type { HotAccount } from '../../../shared/accounts/hot-account-store.ts';
import { AppError } from '../../../shared/contract/errors.ts';
import { waitForLookUp } from '../../../shared/platform/storage/wait-for-look-up.ts';
import type { ApiContext } from '../../http/request/context.ts';
import { keyHolderOf } from '../../http/request/holder.ts';
import type { Services } from '../../services.ts';

/**
 * Loads the account of the request's API key into Redis, for operations without admission. Checks that the key is still
 * the account's key and that the account is not banned.
 * @throws AppError `invalid_api_key`, `account_banned`; `service_unavailable` if it cannot be loaded in time
 */
export async function openAccount(services: Services, context: ApiContext): Promise<HotAccount> {
  const loading = loadAccount(services, keyHolderOf(context));
  const account = await waitForLookUp(services.accountWaitMs, 'loading an account', loading);
  if (account.banned) throw new AppError('account_banned');
  return account;
}

async function loadAccount(services: Services, holder: KeyHolder): Promise<HotAccount> {
  const account = await services.hotAccounts.get(holder.accountId);
  const isCurrentKey = isSameHash(account.keyHash, holder.keyHash) || (await healKey(services, holder));
  if (!isCurrentKey) throw unknownKey();
  return account;
}
