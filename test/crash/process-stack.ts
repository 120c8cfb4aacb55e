import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ExecutionContext } from 'ava';
import { AccountStore } from '../../shared/accounts/account-store.ts';
import { HotAccountStore } from '../../shared/accounts/hot-account-store.ts';
import { ReservationStore } from '../../shared/money/reservation-store.ts';
import { LedgerStore } from '../../shared/ledger/ledger-store.ts';
import { PriceStore } from '../../shared/ledger/price-store.ts';
import { createRedis, waitUntilReady, type RedisClient } from '../../shared/platform/redis/redis-client.ts';
import { loadConfig } from '../../shared/platform/config/config.ts';
import { createLogger } from '../../shared/platform/runtime/logger.ts';
import { openMongo } from '../../shared/platform/storage/mongo-client.ts';
import { findStablePort } from '../support/stable-port.ts';
import { openTestS3 } from '../support/stores.ts';
import { startRole } from '../support/worker-process.ts';
import { openMongoVictim, openRedisVictim, type Victim } from './store-victims.ts';

/** An api or worker process, which a test may also stop as a deployment does. */
export interface RoleVictim extends Victim {
  /** Sends SIGTERM. @returns the exit code */
  terminate(): Promise<number | null>;
}

/** The product as an operator runs it, with each part in its own process: two apis, two workers, Redis, MongoDB. */
export interface ProcessStack {
  /** The processes that a test may kill. A store is among them only if the test started it. */
  readonly victims: readonly Victim[];
  readonly apis: readonly RoleVictim[];
  readonly workers: readonly RoleVictim[];
  /** URLs of the api processes, in the same order. */
  readonly urls: readonly string[];
  /** Environment that makes a child process part of this stack. */
  readonly env: Record<string, string>;
  readonly redis: RedisClient;
  readonly accounts: AccountStore;
  readonly hotAccounts: HotAccountStore;
  readonly ledger: LedgerStore;
  readonly prices: PriceStore;
  readonly reservations: ReservationStore;
}

export async function useProcessStack(t: ExecutionContext, catalog: string): Promise<ProcessStack> {
  const dir = await mkdtemp(join(tmpdir(), 'mg-test-'));
  t.teardown(() => rm(dir, { recursive: true, force: true }));
  const s3 = await openTestS3(join(dir, 's3'));
  t.teardown(() => s3.close());
  const redisStore = await openRedisVictim(t, dir);
  const mongoStore = await openMongoVictim(t, join(dir, 'mongo'));
  await writeFile(join(dir, 'catalog.yaml'), catalog);
  const env: Record<string, string> = {
    REDIS_URL: redisStore.url,
    MONGODB_URL: mongoStore.url,
    ...s3.env,
    MASTER_KEY: 'test-master-key-0123456789abcdef0123456789',
    DATA_DIR: dir,
    CATALOG: join(dir, 'catalog.yaml'),
  };
  const ports = [await findStablePort(), await findStablePort()];
  const apis = await Promise.all(
    ports.map((port, i) => startRoleVictim(t, `api ${i + 1}`, 'api', { ...env, PORT: String(port) })),
  );
  const workers = await Promise.all([1, 2].map((i) => startRoleVictim(t, `worker ${i}`, 'worker', env)));

  const config = loadConfig(env);
  const log = createLogger('test', 'silent');
  const redis = createRedis(config.redisUrl, 'commands', log);
  t.teardown(() => redis.disconnect());
  await waitUntilReady(redis);
  const mongo = openMongo(config.mongodbUrl, log);
  t.teardown(() => mongo.close());
  const accounts = new AccountStore(mongo.db, config);
  const ledger = new LedgerStore(mongo.db);
  return {
    apis,
    workers,
    victims: [...apis, ...workers, ...redisStore.victims, ...mongoStore.victims],
    urls: ports.map((port) => `http://127.0.0.1:${port}`),
    env,
    redis,
    accounts,
    hotAccounts: new HotAccountStore(redis, accounts, ledger),
    ledger,
    prices: new PriceStore(mongo.db),
    reservations: new ReservationStore(redis),
  };
}

async function startRoleVictim(
  t: ExecutionContext,
  name: string,
  role: 'api' | 'worker',
  env: Readonly<Record<string, string>>,
): Promise<RoleVictim> {
  let running = await startRole(t, role, env);
  return {
    name,
    kill: () => running.kill(),
    terminate: () => running.terminate(),
    async restart() {
      running = await startRole(t, role, env);
    },
  };
}
