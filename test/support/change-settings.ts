import { AccountStore, type AccountChange } from '../../shared/accounts/account-store.ts';
import { changeAccount } from '../../shared/accounts/change-account.ts';
import { HotAccountStore } from '../../shared/accounts/hot-account-store.ts';
import { LedgerStore } from '../../shared/ledger/ledger-store.ts';
import type { TestStack } from './stack.ts';

/** Changes an account, as operators do. */
export async function changeSettings(
  { redis, mongo, config }: Pick<TestStack, 'redis' | 'mongo' | 'config'>,
  accountId: string,
  change: AccountChange,
): Promise<void> {
  const accounts = new AccountStore(mongo.db, config);
  const hotAccounts = new HotAccountStore(redis, accounts, new LedgerStore(mongo.db));
  await changeAccount({ redis, accounts, hotAccounts }, accountId, change);
}
