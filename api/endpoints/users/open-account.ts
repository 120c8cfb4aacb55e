// decision 0043
import { healKey } from '../../admission/heal-key.ts';
import { isSameHash } from '../../../shared/accounts/credentials.ts';
import { unknownKey } from '../../../shared/accounts/unknown-key.ts';
import type { HotAccount } from '../../../shared/accounts/hot-account-store.ts';
import { AppError } from '../../../shared/contract/errors.ts';
import { waitForLookUp } from '../../../shared/platform/storage/wait-for-look-up.ts';
import type { ApiContext } from '../../http/request/context.ts';
import { holderOf, type AccountHolder } from '../../http/request/holder.ts';
import { confirmHolder } from '../../http/request/session-holder.ts';
import type { Services } from '../../services.ts';

/**
 * Loads the account that the request acts for into Redis, for operations without admission. Checks that a key is still
 * the account's key, that a session may still act for it, and that the account is not banned.
 * @throws AppError `invalid_api_key`, `account_banned`; `service_unavailable` if it cannot be loaded in time
 */
export async function openAccount(services: Services, context: ApiContext): Promise<HotAccount> {
  const holder = holderOf(context);
  await confirmHolder(services, holder);
  const loading = loadAccount(services, holder);
  const account = await waitForLookUp(services.accountWaitMs, 'loading an account', loading);
  if (account.banned) throw new AppError('account_banned');
  return account;
}

async function loadAccount(services: Services, holder: AccountHolder): Promise<HotAccount> {
  const account = await services.hotAccounts.get(holder.accountId);
  if (holder.keyHash === null) return account;
  const isCurrentKey = isSameHash(account.keyHash, holder.keyHash) || (await healKey(services, holder));
  if (!isCurrentKey) throw unknownKey();
  return account;
}
