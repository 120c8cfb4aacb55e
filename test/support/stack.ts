import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ExecutionContext } from 'ava';
import type { ApiOptions } from '../../api/options.ts';
import { startApi, type RunningApi } from '../../api/server.ts';
import { AccountStore } from '../../shared/accounts/account-store.ts';
import { HotAccountStore, type HotAccount } from '../../shared/accounts/hot-account-store.ts';
import { runRefill } from '../../shared/accounts/refill-script.ts';
import { LedgerStore } from '../../shared/ledger/ledger-store.ts';
import { createRefillEvent } from '../../shared/ledger/usage-event.ts';
import { parseRub } from '../../shared/encoding/money.ts';
import { createRedis, waitUntilReady, type RedisClient } from '../../shared/platform/redis/redis-client.ts';
import { loadConfig, type Config } from '../../shared/platform/config/config.ts';
import type { Running } from '../../shared/platform/runtime/lifecycle.ts';
import { createLogger, type Logger } from '../../shared/platform/runtime/logger.ts';
import { openMongo, type MongoConnection } from '../../shared/platform/storage/mongo-client.ts';
import { startWorker, type WorkerOptions } from '../../workers/worker.ts';
import { retryUntilSuccess } from './retry-until-success.ts';
import { Mailbox } from './mailbox.ts';
import { postJson } from './post-json.ts';
import type { RedisCluster, RedisClusterOptions } from './redis-cluster.ts';
import { openTestMongo, openTestRedis, openTestS3, type OpenedStore, type OwnServer } from './stores.ts';
import { startMongoProxy, startS3Proxy } from './store-proxies.ts';
import type { TcpProxy } from './tcp-proxy.ts';

const builtinCatalog = 'catalog.yaml';
const mongoPassword = 'test-mongo-password';
/** Timeouts of MongoDB lookups: on a busy machine a lookup may take longer than real callers should wait. */
export const apiOptions: Partial<ApiOptions> = {
  keyWaitMs: 30_000,
  accountWaitMs: 30_000,
  databaseWaitMs: 30_000,
  // Many tests start workers late, or never.
  noWorkerTimeoutMs: 60_000,
  // A comment sends the status 200, but on a busy machine a request may take long to fail.
  firstCommentMs: 30_000,
  // Every test stops an api, and most leave idle connections.
  idleGraceMs: 0,
  // Most tests do not need tokenizer vocabularies.
  preloadsVocabularies: false,
};

export interface StackOptions {
  /** YAML text; defaults to the project's own catalog. */
  readonly catalog?: string;
  readonly env?: Readonly<Record<string, string>>;
  /** Redis persists its writes in the stack's folder, so that they survive a restart. */
  readonly durableRedis?: boolean;
  /** Starts a dedicated Redis Cluster for the stack, even if other stacks use a single Redis. */
  readonly cluster?: RedisClusterOptions;
  /** The api and workers connect to MongoDB through a proxy that can hold back its replies. */
  readonly holdsMongo?: boolean;
  /** The api and workers connect to S3 through a proxy. */
  readonly holdsS3?: boolean;
  /** By default one worker for all queues; `[]` starts none. */
  readonly workers?: readonly WorkerOptions[];
  readonly api?: Partial<ApiOptions>;
  /** Workers send mails, to a test mail server. */
  readonly mail?: true;
  /** For the api and workers; by default a logger at `LOG_LEVEL`. */
  readonly log?: Logger;
}

export interface TestAccount {
  readonly id: string;
  readonly apiKey: string;
}

/** The whole product on loopback, with the stores opened by `stores.ts`: an api and its workers in this process. */
export interface TestStack {
  readonly config: Config;
  /** Environment variables that make a child process use the stores of this stack. */
  readonly env: Record<string, string>;
  readonly api: RunningApi;
  readonly url: string;
  readonly redis: RedisClient;
  /** Null unless the stack has its own Redis Cluster. */
  readonly cluster: RedisCluster | null;
  /** A connection that bypasses the proxy, if there is one. */
  readonly mongo: MongoConnection;
  readonly mongoProxy: TcpProxy | null;
  readonly s3Proxy: TcpProxy | null;
  /** Null unless `mail` was set. */
  readonly mailbox: Mailbox | null;
  readonly log: Logger;
  readonly dir: string;
  startWorker(options?: Partial<WorkerOptions>): Promise<Running>;
  /** Stops all workers, as before an update. */
  stopWorkers(): Promise<void>;
  stopMongo(): Promise<void>;
  /** Restarts MongoDB on the same port, with its data. */
  restartMongo(): Promise<void>;
  /** Kills Redis, as in a crash. */
  killRedis(): Promise<void>;
  /** Restarts Redis on the same port, with its data if `durableRedis` was set. */
  restartRedis(): Promise<void>;
  createAccount(options?: { balance?: string; freeRequests?: number; rpm?: number }): Promise<TestAccount>;
  readAccount(id: string): Promise<HotAccount>;
  /** Posts JSON, and returns the response with any status. */
  post(
    path: string,
    apiKey: string | null,
    body: unknown,
    headers?: Record<string, string>,
  ): Promise<Response>;
  close(): Promise<void>;
}

export const allQueues: WorkerOptions = { queues: ['chat', 'image', 'embedding'], concurrency: 256 };
/** A worker whose requests operators see at once. */
export const promptWorker: WorkerOptions = { ...allQueues, trafficIntervalMs: 200 };

export async function startStack(options: StackOptions = {}): Promise<TestStack> {
  const dir = await mkdtemp(join(tmpdir(), 'mg-test-'));
  const [redisStore, mongoStore, s3] = await Promise.all([
    openTestRedis({
      ...(options.durableRedis === true ? { dir } : {}),
      ...(options.cluster === undefined ? {} : { cluster: options.cluster }),
    }),
    openTestMongo({ dir: join(dir, 'mongo'), password: mongoPassword }),
    openTestS3(join(dir, 's3')),
  ]);
  const proxiedMongo = options.holdsMongo === true ? await startMongoProxy(mongoStore.url) : null;
  const proxiedS3 = options.holdsS3 === true ? await startS3Proxy(s3.env['S3_ENDPOINT']!) : null;
  const mailbox = options.mail === true ? await Mailbox.start() : null;
  const catalogPath = options.catalog === undefined ? builtinCatalog : join(dir, 'catalog.yaml');
  if (options.catalog !== undefined) await writeFile(catalogPath, options.catalog);
  const env: Record<string, string> = {
    REDIS_URL: redisStore.url,
    MONGODB_URL: proxiedMongo?.url ?? mongoStore.url,
    ...s3.env,
    ...(proxiedS3 === null ? {} : { S3_ENDPOINT: proxiedS3.url }),
    MASTER_KEY: 'test-master-key-0123456789abcdef0123456789',
    DATA_DIR: dir,
    CATALOG: catalogPath,
    PORT: '0',
    ...(mailbox === null ? {} : { SMTP_URL: mailbox.url }),
    LOG_LEVEL: process.env['TEST_LOG_LEVEL'] ?? 'silent',
    ...options.env,
  };
  const config = loadConfig(env);
  const log = options.log ?? createLogger('test', config.logLevel);
  const redis = createRedis(config.redisUrl, 'commands', log);
  await waitUntilReady(redis);
  const mongo = openMongo(options.env?.['MONGODB_URL'] ?? mongoStore.url, log);
  const accounts = new AccountStore(mongo.db, config);
  const hotAccounts = new HotAccountStore(redis, accounts, new LedgerStore(mongo.db));
  const api = await startApi(config, env, log, { ...apiOptions, ...options.api });
  const workers: Running[] = [];
  for (const worker of options.workers ?? [allQueues])
    workers.push(await startWorker(config, env, log, worker));
  return {
    config,
    env,
    api,
    url: api.url,
    redis,
    cluster: redisStore.cluster,
    mongo,
    mongoProxy: proxiedMongo?.proxy ?? null,
    s3Proxy: proxiedS3?.proxy ?? null,
    mailbox,
    log,
    dir,
    stopMongo: () => ownServerOf(mongoStore).kill(),
    restartMongo: () => ownServerOf(mongoStore).restart(),
    killRedis: () => ownServerOf(redisStore).kill(),
    restartRedis: () => ownServerOf(redisStore).restart(),
    async startWorker(more) {
      const worker = await startWorker(config, env, log, { ...allQueues, ...more });
      workers.push(worker);
      return worker;
    },
    async stopWorkers() {
      await Promise.all(workers.splice(0).map((worker) => worker.stop()));
    },
    async createAccount({ balance = '100', freeRequests = 0, rpm = 100_000 } = {}) {
      const { id, apiKey } = await retryUntilSuccess('MongoDB to take the account', () =>
        accounts.create({ userType: 'default', requestsPerMinute: rpm }),
      );
      await hotAccounts.load(id);
      const event = createRefillEvent(`create-${id}`, id, 'test');
      await runRefill(redis, { amountNano: parseRub(balance)!, freeRequests, event });
      return { id, apiKey };
    },
    readAccount: (id) => hotAccounts.get(id),
    post: (path, apiKey, body, headers) => postJson(`${api.url}${path}`, apiKey, body, headers),
    async close() {
      await Promise.all(workers.map((worker) => worker.stop()));
      await api.stop();
      await mongo.close();
      redis.disconnect();
      await Promise.all([proxiedMongo?.proxy.close(), proxiedS3?.proxy.close(), mailbox?.stop()]);
      await Promise.all([mongoStore.close(), s3.close(), redisStore.close()]);
      await rm(dir, { recursive: true, force: true });
    },
  };
}

function ownServerOf({ server }: OpenedStore): OwnServer {
  if (server === null) throw new Error('this test may not kill the store: declare it with testWithOwnStore');
  return server;
}

/** A stack that is closed when the test ends. */
export async function useStack(t: ExecutionContext, options: StackOptions = {}): Promise<TestStack> {
  const stack = await startStack(options);
  t.teardown(() => stack.close());
  return stack;
}
