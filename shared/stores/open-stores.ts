import { AccountStore } from '../accounts/account-store.ts';
import { RefillCodeStore } from '../accounts/refill-code-store.ts';
import { HotAccountStore } from '../accounts/hot-account-store.ts';
import { CatalogStore } from '../catalog/catalog-store.ts';
import { LedgerStore } from '../ledger/ledger-store.ts';
import { PriceStore } from '../ledger/price-store.ts';
import { PayloadStore } from '../work/queue/payload-store.ts';
import { checkEviction } from '../platform/redis/eviction-policy.ts';
import { locateRedis } from '../platform/redis/locate-redis-client.ts';
import { createRedis, waitUntilReady, type RedisClient } from '../platform/redis/redis-client.ts';
import { Subscriber } from '../platform/redis/subscriber-client.ts';
import { StoredFramesStore } from '../work/replies/stored-frames-store.ts';
import type { Config } from '../platform/config/config.ts';
import type { ProcessMetrics } from '../platform/metrics/process-metrics.ts';
import { measureRoundTrips } from './measure-round-trips.ts';
import type { Logger } from '../platform/runtime/logger.ts';
import { openMongo, type MongoConnection } from '../platform/storage/mongo-client.ts';
import { ObjectStore } from '../platform/storage/object-store.ts';
import { MailQueue } from '../account-area/mail-queue.ts';
import { openWebStores, type WebStores } from '../account-area/web-stores.ts';

/** The connections of an api or worker process, and the stores that use them. */
export interface Stores {
  readonly redis: RedisClient;
  readonly payloadRedis: RedisClient;
  readonly subscriber: Subscriber;
  readonly mongo: MongoConnection;
  readonly objects: ObjectStore;
  readonly catalog: CatalogStore;
  readonly prices: PriceStore;
  readonly ledger: LedgerStore;
  readonly accounts: AccountStore;
  readonly hotAccounts: HotAccountStore;
  readonly codes: RefillCodeStore;
  readonly payloads: PayloadStore;
  readonly storedFrames: StoredFramesStore;
  readonly web: WebStores;
  readonly mails: MailQueue;
  /** Opens another client. `close` closes it, too. */
  readonly connect: (purpose: 'blocking' | 'bullmq') => Promise<RedisClient>;
  readonly close: () => Promise<void>;
}

/** @throws ConfigError if a store rejects this service or does not meet its requirements */
export async function openStores(
  config: Config,
  env: NodeJS.ProcessEnv,
  log: Logger,
  metrics?: ProcessMetrics,
): Promise<Stores> {
  const redisUrl = await locateRedis(config.redisUrl);
  const redis = createRedis(redisUrl, 'commands', log);
  const payloadRedis = createRedis(redisUrl, 'payloads', log);
  const subscriber = new Subscriber(redisUrl, log);
  const clients = [payloadRedis, redis];
  await Promise.all([waitUntilReady(redis), waitUntilReady(payloadRedis)]);
  await checkEviction(redis, log, { isProduction: env['NODE_ENV'] === 'production' });
  const mongo = openMongo(config.mongodbUrl, log);
  if (metrics !== undefined) measureRoundTrips(metrics, { redis, mongo });
  const prices = new PriceStore(mongo.db);
  const catalog = await CatalogStore.open({
    path: config.catalogPath,
    env,
    redis,
    log,
    findPriceDay: await prices.readDays(),
  });
  const mails = new MailQueue(redis, config);
  const ledger = new LedgerStore(mongo.db, config);
  const objects = new ObjectStore(config.s3);
  const accounts = new AccountStore(mongo.db, config);
  return {
    redis,
    payloadRedis,
    subscriber,
    mongo,
    objects,
    catalog,
    prices,
    ledger,
    accounts,
    hotAccounts: new HotAccountStore(redis, accounts, ledger),
    codes: new RefillCodeStore(mongo.db),
    payloads: new PayloadStore(payloadRedis, log),
    storedFrames: new StoredFramesStore(redis, payloadRedis),
    web: openWebStores(mongo, config),
    mails,
    async connect(purpose) {
      const client = createRedis(redisUrl, purpose, log);
      clients.push(client);
      await waitUntilReady(client);
      return client;
    },
    async close() {
      await mails.close();
      objects.close();
      await mongo.close();
      subscriber.close();
      for (const client of clients) client.disconnect();
    },
  };
}
