import { mkdtemp, rm } from 'node:fs/promises';
import { randomUUID } from 'node:crypto';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { AccountStore } from '../../shared/accounts/account-store.ts';
import { HotAccountStore } from '../../shared/accounts/hot-account-store.ts';
import { runRefill } from '../../shared/accounts/refill-script.ts';
import { LedgerStore } from '../../shared/ledger/ledger-store.ts';
import { createRefillEvent } from '../../shared/ledger/usage-event.ts';
import { createRedis, waitUntilReady, type RedisClient } from '../../shared/platform/redis/redis-client.ts';
import { redisKeys, shardCount, shardOf } from '../../shared/platform/redis/redis-keys.ts';
import type { Running } from '../../shared/platform/runtime/lifecycle.ts';
import { createLogger } from '../../shared/platform/runtime/logger.ts';
import { Faults } from '../../workers/reporting/faults.ts';
import { openMongo, type MongoConnection } from '../../shared/platform/storage/mongo-client.ts';
import { startLedgerReader } from '../../workers/ledger/ledger-reader.ts';
import { ShardLedger } from '../../workers/ledger/shard-ledger.ts';
import { ShardLeases } from '../../workers/ledger/shard-leases.ts';
import { openTestMongo, openTestRedis } from './stores.ts';
import { waitFor } from './wait-for.ts';

/** Redis and MongoDB with the billing stores, without any process that uses them. */
export interface LedgerServices {
  readonly redisUrl: string;
  readonly redis: RedisClient;
  readonly mongo: MongoConnection;
  readonly accounts: AccountStore;
  readonly ledger: LedgerStore;
  readonly hotAccounts: HotAccountStore;
  /** Creates an account in Redis and MongoDB. Its first credit is on the ledger stream, and not in MongoDB yet. */
  createAccount(options?: {
    balanceNano?: bigint;
    freeRequests?: number;
    shard?: number;
  }): Promise<{ readonly id: string; readonly keyHash: string }>;
  /** @param store the store to write to; defaults to that of these services */
  startReader(store?: LedgerStore): Running;
  /** Applies the first entries of a shard's ledger stream to MongoDB. */
  moveSome(shard: number, most: number): Promise<void>;
  /** Applies all entries of the ledger streams to MongoDB. */
  moveAll(): Promise<void>;
  /** Every field of an account in Redis. */
  readHash(accountId: string): Promise<Record<string, string>>;
  close(): Promise<void>;
}

/** @param mongoUrl a MongoDB that is already running; the embedded one by default */
export async function openLedgerServices({
  mongoUrl,
}: { readonly mongoUrl?: string } = {}): Promise<LedgerServices> {
  const dir = await mkdtemp(join(tmpdir(), 'mg-test-'));
  const [redisServer, mongoServer] = await Promise.all([
    openTestRedis(),
    mongoUrl === undefined ? openTestMongo({ dir }) : null,
  ]);
  const log = createLogger('test', 'silent');
  const redis = createRedis(redisServer.url, 'commands', log);
  await waitUntilReady(redis);
  const mongo = openMongo(mongoUrl ?? mongoServer!.url, log);
  const accounts = new AccountStore(mongo.db, {
    masterKey: 'test-master-key-0123456789abcdef0123456789',
    revealsKeys: true,
  });
  const ledger = new LedgerStore(mongo.db);
  await Promise.all([accounts.createIndexes(), ledger.createIndexes()]);
  const hotAccounts = new HotAccountStore(redis, accounts, ledger);
  const startReader = (store = ledger): Running =>
    startLedgerReader({
      redis,
      store,
      accounts,
      hotAccounts,
      leases: new ShardLeases(redis, randomUUID(), redisKeys.ledgerLease),
      faults: new Faults(log),
      log,
    });
  return {
    redisUrl: redisServer.url,
    redis,
    mongo,
    accounts,
    ledger,
    hotAccounts,
    startReader,
    async moveSome(shard, most) {
      await new ShardLedger({ redis, store: ledger, accounts, hotAccounts, log }, shard).moveBatch(most);
    },
    async createAccount({ balanceNano = 1_000n, freeRequests = 0, shard } = {}) {
      let created = await accounts.create({ userType: 'default', requestsPerMinute: 1_000_000 });
      const isInOtherShard = (): boolean => shard !== undefined && shardOf(created.id) !== shard;
      while (isInOtherShard())
        created = await accounts.create({ userType: 'default', requestsPerMinute: 1_000_000 });
      const { id } = created;
      await hotAccounts.load(id);
      const event = createRefillEvent(`create-${id}`, id, 'test');
      await runRefill(redis, { amountNano: balanceNano, freeRequests, event });
      return { id, keyHash: (await hotAccounts.get(id)).keyHash };
    },
    async moveAll() {
      const reader = startReader();
      for (let shard = 0; shard < shardCount; shard++) {
        const key = redisKeys.ledgerStream(shard);
        await waitFor(`${key} to be empty`, async () => (await redis.xlen(key)) === 0);
      }
      await reader.stop();
    },
    readHash: async (accountId) => await redis.hgetall(redisKeys.account(accountId)),
    async close() {
      await mongo.close();
      redis.disconnect();
      await Promise.all([mongoServer?.close(), redisServer.close()]);
      await rm(dir, { recursive: true, force: true });
    },
  };
}
