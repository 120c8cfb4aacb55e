import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ExecutionContext } from 'ava';
import { addCredentials } from '../../scripts/embedded/credentials.ts';
import { startEmbeddedS3 } from '../../scripts/embedded/s3/server.ts';
import { dist } from '../../scripts/start/paths.ts';
import { readFirstLine } from '../../scripts/start/read-first-line.ts';
import { AccountStore } from '../../shared/accounts/account-store.ts';
import { HotAccountStore } from '../../shared/billing/hot-account-store.ts';
import { ReservationStore } from '../../shared/billing/reservation-store.ts';
import { LedgerStore } from '../../shared/ledger/ledger-store.ts';
import { PriceStore } from '../../shared/ledger/price-store.ts';
import { createRedis, waitUntilReady, type RedisClient } from '../../shared/redis/redis-client.ts';
import { loadConfig } from '../../shared/runtime/config.ts';
import { createLogger } from '../../shared/runtime/logger.ts';
import { openMongo } from '../../shared/storage/mongo-client.ts';
import { startTestRedis } from '../support/redis.ts';
import { findStablePort } from '../support/stable-port.ts';
import { startRole } from '../support/worker-process.ts';

const mongoPassword = 'test-mongo-password';

/** Something that dies and comes back: same place, same data. */
export interface Victim {
  readonly name: string;
  /** Ends it by SIGKILL, and resolves when it is gone. */
  kill(): Promise<void>;
  /** Resolves when it serves again. */
  restart(): Promise<void>;
}

/** The product as an operator runs it, each part a process of its own: two apis, two workers, Redis, MongoDB. */
export interface ProcessStack {
  readonly victims: readonly Victim[];
  /** Of the api processes. */
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
  const credentials = { accessKeyId: 'test-key', secretAccessKey: 'test-secret' };
  const s3 = await startEmbeddedS3({ dir: join(dir, 's3'), ...credentials });
  t.teardown(() => s3.close());
  const redisVictim = await startRedisVictim(t, dir);
  const mongoVictim = await startMongoVictim(t, join(dir, 'mongo'));
  await writeFile(join(dir, 'catalog.yaml'), catalog);
  const env: Record<string, string> = {
    REDIS_URL: redisVictim.url,
    MONGODB_URL: mongoVictim.url,
    S3_ENDPOINT: s3.endpoint,
    AWS_ACCESS_KEY_ID: credentials.accessKeyId,
    AWS_SECRET_ACCESS_KEY: credentials.secretAccessKey,
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
    victims: [...apis, ...workers, redisVictim, mongoVictim],
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

async function startRedisVictim(t: ExecutionContext, dir: string): Promise<Victim & { url: string }> {
  let server = await startTestRedis({ dir });
  const { url, port } = server;
  t.teardown(() => server.stop());
  return {
    name: 'redis',
    url,
    kill: () => server.stop('SIGKILL'),
    async restart() {
      server = await startTestRedis({ dir, port });
    },
  };
}

async function startMongoVictim(t: ExecutionContext, dir: string): Promise<Victim & { url: string }> {
  let child: ChildProcess;
  let exited: Promise<unknown>;
  const start = async (port: number): Promise<string> => {
    const args = [dist('scripts/embedded/mongo/main.js'), '--dir', dir, '--port', String(port)];
    child = spawn(process.execPath, args, { stdio: ['pipe', 'pipe', 'inherit'] });
    child.stdin!.end(mongoPassword);
    const ended = new AbortController();
    exited = once(child, 'exit').finally(() => ended.abort());
    const line = await readFirstLine(child.stdout!, ended.signal);
    return addCredentials((JSON.parse(line) as { endpoint: string }).endpoint, mongoPassword);
  };
  const kill = async (): Promise<void> => {
    if (child.exitCode === null && child.signalCode === null) child.kill('SIGKILL');
    await exited;
  };
  const port = await findStablePort();
  const url = await start(port);
  t.teardown(kill);
  return {
    name: 'mongodb',
    url,
    kill,
    async restart() {
      await start(port);
    },
  };
}

async function startRoleVictim(
  t: ExecutionContext,
  name: string,
  role: 'api' | 'worker',
  env: Readonly<Record<string, string>>,
): Promise<Victim> {
  let running = await startRole(t, role, env);
  return {
    name,
    kill: () => running.kill(),
    async restart() {
      running = await startRole(t, role, env);
    },
  };
}
