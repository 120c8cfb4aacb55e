import { AccountStore } from '../../shared/accounts/account-store.ts';
import { hashSecret } from '../../shared/accounts/credentials.ts';
import { HotAccountStore } from '../../shared/accounts/hot-account-store.ts';
import { runRefill } from '../../shared/accounts/refill-script.ts';
import { createRefillEvent } from '../../shared/ledger/usage-event.ts';
import { LedgerStore } from '../../shared/ledger/ledger-store.ts';
import { parseRub } from '../../shared/encoding/money.ts';
import { createRedis, waitUntilReady, type RedisClient } from '../../shared/platform/redis/redis-client.ts';
import { redisKeys, shardCount } from '../../shared/platform/redis/redis-keys.ts';
import { loadConfig } from '../../shared/platform/config/config.ts';
import { createLogger } from '../../shared/platform/runtime/logger.ts';
import { openMongo, type MongoConnection } from '../../shared/platform/storage/mongo-client.ts';
import type { Programs } from './programs.ts';
import { startStores } from './stores.ts';

export interface MoneyAccount {
  readonly id: string;
  readonly keyHash: string;
}

/** The stores alone, with accounts that have money and the highest limits. Nothing reads their ledger. */
export interface MoneyStack {
  readonly redis: RedisClient;
  readonly accounts: readonly MoneyAccount[];
  readonly accountStore: AccountStore;
  readonly hotAccounts: HotAccountStore;
  readonly ledger: LedgerStore;
  readonly env: NodeJS.ProcessEnv;
  readonly pids: Readonly<Record<'redis' | 'mongo', number>>;
  close(): Promise<void>;
}

export interface MoneyStackOptions {
  readonly programs: Programs;
  readonly dir: string;
  readonly accountCount: number;
}

export const ledgerStreams: readonly string[] = Array.from({ length: shardCount }, (_, shard) =>
  redisKeys.ledgerStream(shard),
);

const startTimeoutMs = 60_000;
const balance = '1000000';
const requestsPerMinute = 1_000_000;

/** The driver stops trying to connect after two seconds, but a server that was just started may take longer. */
async function waitForMongo({ db }: MongoConnection, signal: AbortSignal): Promise<void> {
  for (;;) {
    try {
      await db.command({ ping: 1 });
      return;
    } catch (error) {
      if (signal.aborted) throw error;
    }
  }
}

export async function startMoneyStack({
  programs,
  dir,
  accountCount,
}: MoneyStackOptions): Promise<MoneyStack> {
  const signal = AbortSignal.timeout(startTimeoutMs);
  const { env, pids } = await startStores({ programs, dir, env: process.env, signal });
  const config = loadConfig(env);
  const log = createLogger('bench', 'silent');
  const redis = createRedis(config.redisUrl, 'commands', log);
  await waitUntilReady(redis);
  const mongo = openMongo(config.mongodbUrl, log);
  await waitForMongo(mongo, signal);
  const accountStore = new AccountStore(mongo.db, config);
  const ledger = new LedgerStore(mongo.db);
  const hotAccounts = new HotAccountStore(redis, accountStore, ledger);
  const createAccount = async (): Promise<MoneyAccount> => {
    const { id, apiKey } = await accountStore.create({ userType: 'default', requestsPerMinute });
    await hotAccounts.load(id);
    const event = createRefillEvent(`bench-${id}`, id, 'test');
    await runRefill(redis, { amountNano: parseRub(balance)!, freeRequests: 0, event });
    return { id, keyHash: hashSecret(apiKey) };
  };
  return {
    redis,
    accounts: await Promise.all(Array.from({ length: accountCount }, createAccount)),
    accountStore,
    hotAccounts,
    ledger,
    env,
    pids,
    async close() {
      redis.disconnect();
      await mongo.close();
    },
  };
}

/** Counts the entries in the ledger's streams. */
export async function countStreamEntries(redis: RedisClient): Promise<number> {
  const lengths = await Promise.all(ledgerStreams.map((stream) => redis.xlen(stream)));
  return lengths.reduce((sum, length) => sum + length, 0);
}

/** Counts reservations that have not ended. */
export async function countReservations(redis: RedisClient): Promise<number> {
  const shards = Array.from({ length: shardCount }, (_, shard) => redisKeys.reservations(shard));
  const counts = await Promise.all(shards.map((key) => redis.hlen(key)));
  return counts.reduce((sum, count) => sum + count, 0);
}
