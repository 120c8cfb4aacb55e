import { AccountStore } from '../../../../shared/accounts/account-store.ts';
import { hashSecret } from '../../../../shared/accounts/credentials.ts';
import { HotAccountStore } from '../../../../shared/accounts/hot-account-store.ts';
import { runRefill } from '../../../../shared/accounts/refill-script.ts';
import { parseRub } from '../../../../shared/encoding/money.ts';
import { LedgerStore } from '../../../../shared/ledger/ledger-store.ts';
import { createRefillEvent } from '../../../../shared/ledger/usage-event.ts';
import { loadConfig } from '../../../../shared/platform/config/config.ts';
import type { RedisClient } from '../../../../shared/platform/redis/redis-client.ts';
import { redisKeys, shardCount } from '../../../../shared/platform/redis/redis-keys.ts';
import type { Programs } from '../../harness/programs.ts';
import { startStores, type Stores } from '../../harness/stack/stores.ts';
import { sum } from '../../harness/statistics.ts';

export interface MoneyAccount {
  readonly id: string;
  readonly keyHash: string;
}

/** The stores alone, with accounts that have money and the highest limits. Nothing reads their ledger. */
export interface MoneyStack extends Stores {
  readonly accounts: readonly MoneyAccount[];
  readonly accountStore: AccountStore;
  readonly hotAccounts: HotAccountStore;
  readonly ledger: LedgerStore;
}

const shards = Array.from({ length: shardCount }, (_, shard) => shard);

export const ledgerStreams: readonly string[] = shards.map((shard) => redisKeys.ledgerStream(shard));

const balance = '1000000';
const requestsPerMinute = 1_000_000;

export async function startMoneyStack(programs: Programs, accountCount: number): Promise<MoneyStack> {
  const stores = await startStores(programs);
  const { redis, db } = stores;
  const accountStore = new AccountStore(db, loadConfig(stores.env));
  const ledger = new LedgerStore(db);
  const hotAccounts = new HotAccountStore(redis, accountStore, ledger);
  const createAccount = async (): Promise<MoneyAccount> => {
    const { id, apiKey } = await accountStore.create({ userType: 'default', requestsPerMinute });
    await hotAccounts.load(id);
    const event = createRefillEvent(`bench-${id}`, id, 'test');
    await runRefill(redis, { amountNano: parseRub(balance)!, freeRequests: 0, event });
    return { id, keyHash: hashSecret(apiKey) };
  };
  const accounts = await Promise.all(Array.from({ length: accountCount }, createAccount));
  return { ...stores, accounts, accountStore, hotAccounts, ledger };
}

/** Counts the entries in the ledger's streams. */
export const countStreamEntries = async (redis: RedisClient): Promise<number> =>
  sum(await Promise.all(ledgerStreams.map((stream) => redis.xlen(stream))));

/** Counts reservations that have not ended. */
export const countReservations = async (redis: RedisClient): Promise<number> =>
  sum(await Promise.all(shards.map((shard) => redis.hlen(redisKeys.reservations(shard)))));
