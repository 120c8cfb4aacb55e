import { randomUUID } from 'node:crypto';
import { BanWatch } from '../shared/account-changes/ban-watch.ts';
import { AccountStore } from '../shared/accounts/account-store.ts';
import { ApiKeyStore } from '../shared/accounts/api-key-store.ts';
import { startRequestHeartbeat } from '../shared/billing/heartbeat-requests.ts';
import { HotAccountStore } from '../shared/billing/hot-account-store.ts';
import { ReservationStore } from '../shared/billing/reservation-store.ts';
import { CatalogStore } from '../shared/catalog/catalog-store.ts';
import type { Config } from '../shared/config/config.ts';
import { AppError } from '../shared/contract/errors.ts';
import type { Operation } from '../shared/contract/operation.ts';
import { operations } from '../shared/contract/operations.ts';
import { FairBudget } from '../shared/fairness/fair-budget.ts';
import { Holdings } from '../shared/fairness/holdings.ts';
import { HistoryStore } from '../shared/ledger/history-store.ts';
import { LedgerStore } from '../shared/ledger/ledger-store.ts';
import { PriceStore } from '../shared/ledger/price-store.ts';
import { loadTokenizer } from '../shared/pricing/count-tokens.ts';
import { loadTokenDecoder } from '../shared/pricing/decode-tokens.ts';
import type { EmbeddingJob, ImageJob } from '../shared/queue/job-kinds.ts';
import { JobQueue } from '../shared/queue/job-queue.ts';
import { PayloadStore } from '../shared/queue/payload-store.ts';
import { ReadyQueue } from '../shared/queue/ready-queue.ts';
import { WorkerRegistryStore } from '../shared/queue/worker-registry-store.ts';
import { ReasoningStore } from '../shared/reasoning/reasoning-store.ts';
import { listenToInvalidations } from '../shared/redis/invalidation-channel.ts';
import { locateRedis } from '../shared/redis/locate-redis-client.ts';
import { createRedis, waitUntilReady } from '../shared/redis/redis-client.ts';
import { redisChannels } from '../shared/redis/redis-keys.ts';
import { Subscriber } from '../shared/redis/subscriber-client.ts';
import { RefillCodeStore } from '../shared/refills/refill-code-store.ts';
import { KeptFramesStore } from '../shared/reply/kept-frames-store.ts';
import { ResponseStore } from '../shared/reply/response-store.ts';
import type { Running } from '../shared/runtime/lifecycle.ts';
import type { Logger } from '../shared/runtime/logger.ts';
import { runInBackground } from '../shared/runtime/run-in-background.ts';
import { within } from '../shared/runtime/within.ts';
import { openMongo } from '../shared/storage/mongo-client.ts';
import { ObjectStore } from '../shared/storage/object-store.ts';
import { StatsCache } from '../shared/traffic/stats-cache.ts';
import { TrafficRecorder } from '../shared/traffic/traffic-recorder.ts';
import { statsStepMs, TrafficStore } from '../shared/traffic/traffic-store.ts';
import { MailQueue } from '../shared/web/mail-queue.ts';
import { openWebStores } from '../shared/web/web-stores.ts';
import { RecentRefusals } from './admission/recent-refusals.ts';
import { createApp } from './app.ts';
import { defaultBodyTimes, longestBodyMs, type BodyTimes } from './bodies/body-pace.ts';
import { warnOfHiddenCallers } from './callers/warn-of-hidden-callers.ts';
import { Captcha } from './captcha/captcha.ts';
import { HttpConnections } from './connections/http-connections.ts';
import { limitConnections } from './connections/open-files.ts';
import { defaultMaxStallMs } from './connections/stall-guard.ts';
import { BulkShares } from './dispatch/bulk-shares.ts';
import { ChatDispatcher } from './dispatch/dispatch-chat.ts';
import { JobDispatcher } from './dispatch/dispatch-job.ts';
import { DurableJobs } from './dispatch/durable-jobs.ts';
import { EmbeddingBatcher } from './dispatch/embedding-batcher.ts';
import { endPendingReplies } from './dispatch/end-account.ts';
import { KeptResponses } from './dispatch/kept-responses.ts';
import { PendingReplies } from './dispatch/pending-replies.ts';
import { findContested } from './dispatch/response-memory.ts';
import { DocumentReader } from './files/document-reader.ts';
import { corsHeaders } from './middleware/cors.ts';
import type { Services, WebServices } from './services.ts';
import { EmailCodeStore } from './web/email-code-store.ts';
import { Limits } from './web/limits.ts';

export interface RunningApi extends Running {
  /** The origin it listens on, without a trailing slash. */
  readonly url: string;
}

const largestBodyBytes = Math.max(
  ...Object.values<Operation>(operations).map((operation) => operation.bodyLimitBytes ?? 0),
);

/** A parsed body takes two to three times its length, which is well within Node's heap. */
const defaultRequestMemoryBytes = 512_000_000;
/** Twenty of the largest. */
const defaultResponseMemoryBytes = 512_000_000;
/** Each holds half a megabyte of its file. */
const defaultMaxDownloads = 256;
/** Half of the object store client's connections, so that health checks and kept responses find one free. */
const maxDownloadReads = 24;
/** Each makes at most two queries at once, so that some of the pool's 20 connections always stay free. */
const maxDatabaseTurns = 8;

/** Actions that a stopping process does not record within this time are recorded by workers. */
const maxFinishingMs = 5_000;

/** Includes the 2 s that a Redis which lost its memory waits for data in transit to MongoDB. */
const defaultAccountWaitMs = 3_000;

/** The time that MongoDB itself may take for a page of logs. */
const defaultDatabaseWaitMs = 5_000;

export interface ApiOptions {
  /** How often the public stats change (ms). */
  readonly statsStepMs?: number;
  /** Memory budget in bytes for the bodies of all requests in progress. */
  readonly requestMemoryBytes?: number;
  /** Memory budget in bytes for all large responses in progress. */
  readonly responseMemoryBytes?: number;
  readonly maxDownloads?: number;
  /** How long bytes may wait for a client that reads none of them. */
  readonly maxStallMs?: number;
  /** Time limits for receiving bodies. */
  readonly bodyTimes?: BodyTimes;
  /** How long a caller waits for its key to be looked up. */
  readonly keyWaitMs?: number;
  /** How long a caller waits for its account to be loaded from MongoDB. */
  readonly accountWaitMs?: number;
  /** How long a caller waits for MongoDB. */
  readonly databaseWaitMs?: number;
  /** Whether to load the tokenizer at startup, which takes a third of a second. Otherwise the first request does. */
  readonly preloadsVocabularies?: boolean;
}

/** Builds everything an api process needs, and listens. */
export async function startApi(
  config: Config,
  env: NodeJS.ProcessEnv,
  log: Logger,
  options: ApiOptions = {},
): Promise<RunningApi> {
  const redisUrl = await locateRedis(config.redisUrl);
  const redis = createRedis(redisUrl, 'commands', log);
  const payloadRedis = createRedis(redisUrl, 'payloads', log);
  const subscriber = new Subscriber(redisUrl, log);
  await Promise.all([waitUntilReady(redis), waitUntilReady(payloadRedis)]);
  const mongo = openMongo(config.mongodbUrl, log);
  const objects = new ObjectStore(config.s3);
  const prices = new PriceStore(mongo.db);
  const catalog = await CatalogStore.open({
    path: config.catalogPath,
    env,
    redis,
    log,
    findPriceDay: await prices.readDays(),
  });
  const accounts = new AccountStore(mongo.db, config);
  const apiKeys = new ApiKeyStore(redis, accounts, { waitMs: options.keyWaitMs });
  const workers = new WorkerRegistryStore(redis);
  const responseMemory = new FairBudget({
    capacity: options.responseMemoryBytes ?? defaultResponseMemoryBytes,
  });
  const waiters = new PendingReplies(randomUUID(), redis, subscriber, workers, responseMemory, log);
  const payloads = new PayloadStore(payloadRedis, log);
  const ledger = new LedgerStore(mongo.db);
  const hotAccounts = new HotAccountStore(redis, accounts, ledger);
  const frames = new KeptFramesStore(redis, payloadRedis);
  const answers = new ResponseStore(frames, objects);
  const kept = new KeptResponses({ redis, frames, answers, memory: responseMemory, log });
  const listRequests = () => Array.from(waiters.entries(), ({ waiter }) => waiter.request);
  const bans = new BanWatch({
    hotAccounts,
    listAccounts: () => [...listRequests().map(({ accountId }) => accountId), ...kept.accounts()],
    endAccount: (accountId) => {
      const error = new AppError('account_banned');
      endPendingReplies(waiters, accountId, error);
      kept.endAccount(accountId, error);
    },
    log,
  });
  listenToInvalidations(subscriber, (change) => {
    runInBackground(bans.handle(change), 'ban look-up', log);
    if (change?.kind !== 'models') apiKeys.drop(change === null ? null : change.accountId);
    if (change === null || change.kind === 'models') {
      catalog
        .refreshDisabled()
        .catch((error: unknown) => log.warn({ err: error }, 'the disabled models could not be read'));
    }
  });

  const trafficStore = new TrafficStore(redis, { stepMs: options.statsStepMs ?? statsStepMs });
  const traffic = new TrafficRecorder(trafficStore, log);
  const finish = { redis, ledger, hotAccounts, traffic, prices };
  const reservations = new ReservationStore(redis);
  const jobs = new JobDispatcher(finish, waiters, kept, reservations, log);
  const durableJobs = new DurableJobs({ redis, payloads: payloadRedis, kept, log });
  const listHeld = () => [...listRequests(), ...durableJobs.placing()];
  const holding = startRequestHeartbeat(reservations, listHeld, log);
  const bulkShares = new BulkShares(redis, workers, log);
  const embeddingQueues = {
    quick: new JobQueue<EmbeddingJob>('embedding', redis, payloads),
    bulk: new JobQueue<EmbeddingJob>('embedding-bulk', redis, payloads),
  };
  const images = {
    quick: new JobQueue<ImageJob>('image', redis, payloads),
    bulk: new JobQueue<ImageJob>('image-bulk', redis, payloads),
  };
  const documents = new DocumentReader(log);
  const web: WebServices = {
    ...openWebStores(mongo, config),
    captcha: new Captcha({ redis, log }),
    emailCodes: new EmailCodeStore(redis, config.masterKey),
    limits: new Limits(redis, config.masterKey),
    mails: new MailQueue(redis, config),
    unfinished: new Set(),
  };
  const services: Services = {
    config,
    log,
    redis,
    mongo,
    objects,
    catalog,
    accounts,
    apiKeys,
    hotAccounts,
    accountWaitMs: options.accountWaitMs ?? defaultAccountWaitMs,
    databaseWaitMs: options.databaseWaitMs ?? defaultDatabaseWaitMs,
    calls: { short: new Holdings(), streams: new Holdings() },
    refusals: new RecentRefusals(),
    codes: new RefillCodeStore(mongo.db),
    web,
    history: new HistoryStore(ledger, redis),
    workers,
    chats: new ChatDispatcher(
      finish,
      { quick: new ReadyQueue(redis, 'quick'), bulk: new ReadyQueue(redis, 'bulk') },
      bulkShares,
      payloads,
      waiters,
      kept,
      log,
    ),
    jobs,
    durableJobs,
    requestMemory: new FairBudget({ capacity: options.requestMemoryBytes ?? defaultRequestMemoryBytes }),
    bodyTimes: options.bodyTimes ?? defaultBodyTimes,
    reasoning: new ReasoningStore(redis, log),
    documents,
    responseMemory,
    downloads: new FairBudget({ capacity: options.maxDownloads ?? defaultMaxDownloads }),
    downloadReads: new FairBudget({ capacity: maxDownloadReads }),
    databaseTurns: new FairBudget({ capacity: maxDatabaseTurns }),
    embeddings: new EmbeddingBatcher(embeddingQueues, bulkShares, jobs),
    images,
    bulkShares,
    modelTraffic: new StatsCache({ read: () => trafficStore.readModels(), log }),
    totalTraffic: new StatsCache({ read: () => trafficStore.readTotals(), log }),
    publicUrl: '',
  };
  const handle = createApp(services).callback();
  const connections = new HttpConnections({
    keepAliveTimeoutMs: config.keepAliveTimeoutMs,
    // Each body is timed by its length; Node would abort a large one after five minutes, however fast it arrives.
    requestTimeoutMs: longestBodyMs(largestBodyBytes),
    limit: limitConnections(config, log),
    isProxied: config.trustProxy,
    maxStallMs: options.maxStallMs ?? defaultMaxStallMs,
    findContested,
    corsHeaders: (origin) => corsHeaders(config.corsOrigins, origin),
    handle: (request, response) => runInBackground(handle(request, response), 'answering a request', log),
    log,
  });
  warnOfHiddenCallers(config, log);
  subscriber.listen(redisChannels.apis, { onMessage: () => undefined });
  await subscriber.start();
  const url = await connections.listen(config.host, config.port);
  services.publicUrl = config.publicUrl ?? url;
  if (options.preloadsVocabularies !== false) {
    // So that the first request does not pay for it. Nothing waits for it.
    setImmediate(loadTokenizer);
    setImmediate(loadTokenDecoder);
  }
  log.info({ url }, 'api ready');

  return {
    url,
    async stop() {
      durableJobs.close();
      await Promise.all([connections.stop(), waiters.drained()]);
      waiters.close();
      bulkShares.close();
      await holding.stop();
      await bans.stop();
      catalog.close();
      await traffic.stop();
      const queues = [embeddingQueues, images].flatMap((ofKind) => Object.values(ofKind));
      await Promise.all(queues.map((queue) => queue.close()));
      await documents.close();
      await within(maxFinishingMs, Promise.allSettled(web.unfinished), () => undefined);
      await Promise.all([web.captcha.close(), web.mails.close()]);
      objects.close();
      await mongo.close();
      subscriber.close();
      for (const client of [payloadRedis, redis]) client.disconnect();
    },
  };
}
