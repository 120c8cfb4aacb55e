import { AppError } from '../../shared/contract/errors.ts';
import { holderOf } from '../middleware/authenticate.ts';
import type { ApiContext } from '../middleware/request-context.ts';
import { presentProfile } from '../present/accounts.ts';
import type { Services } from '../services.ts';

export function getProfile({ hotAccounts, apiKeys }: Services) {
  return async (context: ApiContext): Promise<void> => {
    const { accountId, keyHash } = holderOf(context);
    const account = await hotAccounts.get(accountId);
    if (account.keyHash !== keyHash) {
      await apiKeys.forget(keyHash);
      throw new AppError('invalid_api_key');
    }
    if (account.banned) throw new AppError('account_banned');
    context.body = presentProfile(account);
  };
}
