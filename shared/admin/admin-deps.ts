import type { AccountStore } from '../accounts/account-store.ts';
import type { ApiKeyStore } from '../accounts/api-key-store.ts';
import type { HotAccountStore } from '../accounts/hot-account-store.ts';
import type { RefillCodeStore } from '../accounts/refill-code-store.ts';
import type { WebStores } from '../account-area/web-stores.ts';
import type { LedgerStore } from '../ledger/ledger-store.ts';
import type { Config } from '../platform/config/config.ts';
import type { RedisClient } from '../platform/redis/redis-client.ts';
import type { Logger } from '../platform/runtime/logger.ts';
import type { MongoConnection } from '../platform/storage/mongo-client.ts';

/** The stores that operators' actions use, in the api and in the `admin` command. */
export interface AdminDeps {
  readonly config: Config;
  readonly log: Logger;
  readonly redis: RedisClient;
  readonly mongo: MongoConnection;
  readonly ledger: LedgerStore;
  readonly accounts: AccountStore;
  readonly apiKeys: ApiKeyStore;
  /** Accounts in Redis, with their current balances; `accounts` are their documents in MongoDB. */
  readonly hotAccounts: HotAccountStore;
  readonly codes: RefillCodeStore;
  readonly web: WebStores;
}
