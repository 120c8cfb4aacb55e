import { randomUUID } from 'node:crypto';
import { BanWatch } from '../shared/accounts/ban-watch.ts';
import { AccountStore } from '../shared/accounts/account-store.ts';
import { ApiKeyStore } from '../shared/accounts/api-key-store.ts';
import { startHolding } from '../shared/billing/hold-requests.ts';
import { RefillCodeStore } from '../shared/accounts/refill-code-store.ts';
import { HotAccountStore } from '../shared/billing/hot-account-store.ts';
import { ReservationStore } from '../shared/billing/reservation-store.ts';
import { CatalogStore } from '../shared/catalog/catalog-store.ts';
import { FairBudget } from '../shared/fairness/fair-budget.ts';
import { HistoryStore } from '../shared/ledger/history-store.ts';
import type { Operation } from '../shared/contract/operation.ts';
import { operations } from '../shared/contract/operations.ts';
import { LedgerStore } from '../shared/ledger/ledger-store.ts';
import { PriceStore } from '../shared/ledger/price-store.ts';
import { loadTokenizer } from '../shared/pricing/count-tokens.ts';
import { loadTokenDecoder } from '../shared/pricing/decode-tokens.ts';
import type { EmbeddingJob, ImageJob } from '../shared/queue/job-kinds.ts';
import { JobQueue } from '../shared/queue/job-queue.ts';
import { PayloadStore } from '../shared/queue/payload-store.ts';
import { ReadyQueue } from '../shared/queue/ready-queue.ts';
import { WorkerRegistryStore } from '../shared/queue/worker-registry-store.ts';
import { listenToInvalidations } from '../shared/redis/invalidation-channel.ts';
import { AnswerStore } from '../shared/reply/answer-store.ts';
import { AppError } from '../shared/contract/errors.ts';
import { KeptFramesStore } from '../shared/reply/kept-frames-store.ts';
import { locateRedis } from '../shared/redis/locate-redis-client.ts';
import { createRedis, waitUntilReady } from '../shared/redis/redis-client.ts';
import { redisChannels } from '../shared/redis/redis-keys.ts';
import { Subscriber } from '../shared/redis/subscriber-client.ts';
import type { Config } from '../shared/runtime/config.ts';
import type { Running } from '../shared/runtime/lifecycle.ts';
import type { Logger } from '../shared/runtime/logger.ts';
import { runInBackground } from '../shared/runtime/run-in-background.ts';
import { within } from '../shared/runtime/within.ts';
import { openMongo } from '../shared/storage/mongo-client.ts';
import { ObjectStore } from '../shared/storage/object-store.ts';
import { FiguresCache } from '../shared/traffic/figures-cache.ts';
import { TrafficRecorder } from '../shared/traffic/traffic-recorder.ts';
import { figuresStepMs, TrafficStore } from '../shared/traffic/traffic-store.ts';
import { ReasoningStore } from '../shared/reasoning/reasoning-store.ts';
import { MailQueue } from '../shared/web/mail-queue.ts';
import { openWebStores } from '../shared/web/web-stores.ts';
import { warnOfHiddenCallers } from './callers/warn-of-hidden-callers.ts';
import { Captcha } from './captcha/captcha.ts';
import { createApp } from './app.ts';
import { HttpConnections } from './connections/http-connections.ts';
import { limitConnections } from './connections/open-files.ts';
import { defaultMaxStallMs } from './connections/stall-guard.ts';
import { DocumentReader } from './files/document-reader.ts';
import { BulkShares } from './dispatch/bulk-shares.ts';
import { ChatDispatcher } from './dispatch/dispatch-chat.ts';
import { JobWaiting } from './dispatch/dispatch-job.ts';
import { DurableJobs } from './dispatch/durable-jobs.ts';
import { EmbeddingBatcher } from './dispatch/embedding-batcher.ts';
import { endWaiters } from './dispatch/end-account.ts';
import { defaultBodyTimes, longestBodyMs, type BodyTimes } from './middleware/body-pace.ts';
import { corsHeaders } from './middleware/cors.ts';
import { RecentRefusals } from './middleware/recent-refusals.ts';
import { KeptAnswers } from './dispatch/kept-answers.ts';
import { ReplyWaiters } from './dispatch/reply-waiters.ts';
import { findContested } from './dispatch/response-memory.ts';
import type { Services, WebServices } from './services.ts';
import { EmailCodeStore } from './web/email-code-store.ts';
import { Limits } from './web/limits.ts';

export interface RunningApi extends Running {
  /** Where it listens, without a last slash. */
  readonly url: string;
}

const largestBodyBytes = Math.max(
  ...Object.values<Operation>(operations).map((operation) => operation.bodyLimitBytes ?? 0),
);

/** Parsed, a body takes two to three times its length: well within Node's heap. */
const defaultRequestMemoryBytes = 512_000_000;
/** Twenty of the largest. */
const defaultResponseMemoryBytes = 512_000_000;
/** Each holds half a megabyte of its file. */
const defaultMaxDownloads = 256;
/** Half of the connections that the object store's client has: health checks and kept answers find one free. */
const maxDownloadReads = 24;
/** Each asks two things at once at the most: of the pool's 20 connections others find some free, however many read. */
const maxDatabaseTurns = 8;

/** What a process that stops does not write down of actions in that time, workers do. */
const maxFinishingMs = 5_000;

/** A Redis that lost its memory waits for 2 s for what was on its way to MongoDB, and a caller for both. */
const defaultAccountWaitMs = 3_000;

/** What MongoDB itself may take for a page of logs. */
const defaultDatabaseWaitMs = 5_000;

export interface ApiOptions {
  /** How long the public figures stay as they are. */
  readonly figuresStepMs?: number;
  /** What the bodies of all requests under way may hold together. */
  readonly requestMemoryBytes?: number;
  /** What large responses under way may hold together. */
  readonly responseMemoryBytes?: number;
  /** How many files may be on their way to callers at once. */
  readonly maxDownloads?: number;
  /** How long bytes may wait for a caller that takes none of them. */
  readonly maxStallMs?: number;
  /** How long bodies may take to come. */
  readonly bodyTimes?: BodyTimes;
  /** How long a caller waits to be told whose key it has. */
  readonly keyWaitMs?: number;
  /** How long a caller waits for its account to be loaded from MongoDB. */
  readonly accountWaitMs?: number;
  /** How long a caller waits for what MongoDB is asked on its behalf. */
  readonly databaseWaitMs?: number;
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
  const waiters = new ReplyWaiters(randomUUID(), redis, subscriber, workers, responseMemory, log);
  const payloads = new PayloadStore(payloadRedis);
  const ledger = new LedgerStore(mongo.db);
  const hotAccounts = new HotAccountStore(redis, accounts, ledger);
  const frames = new KeptFramesStore(redis, payloadRedis);
  const answers = new AnswerStore(frames, objects);
  const kept = new KeptAnswers({ redis, frames, answers, memory: responseMemory, log });
  const listRequests = () => Array.from(waiters.entries(), ({ waiter }) => waiter.request);
  const bans = new BanWatch({
    hotAccounts,
    listAccounts: () => [...listRequests().map(({ accountId }) => accountId), ...kept.accounts()],
    endAccount: (accountId) => {
      const error = new AppError('account_banned');
      endWaiters(waiters, accountId, error);
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

  const trafficStore = new TrafficStore(redis, { stepMs: options.figuresStepMs ?? figuresStepMs });
  const traffic = new TrafficRecorder(trafficStore, log);
  const finish = { redis, ledger, hotAccounts, traffic, prices };
  const reservations = new ReservationStore(redis);
  const jobs = new JobWaiting(finish, waiters, kept, reservations, log);
  const durableJobs = new DurableJobs({ redis, payloads: payloadRedis, kept, log });
  const listHeld = () => [...listRequests(), ...durableJobs.placing()];
  const holding = startHolding(reservations, listHeld, log);
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
    modelTraffic: new FiguresCache({ read: () => trafficStore.readModels(), log }),
    totalTraffic: new FiguresCache({ read: () => trafficStore.readTotals(), log }),
    publicUrl: '',
  };
  const handle = createApp(services).callback();
  const connections = new HttpConnections({
    keepAliveTimeoutMs: config.keepAliveTimeoutMs,
    // Each body is timed by its own length; Node would end a large one after five minutes, however quickly it comes.
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
  // The first request should not pay for it; nothing waits for it either.
  setImmediate(loadTokenizer);
  setImmediate(loadTokenDecoder);
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
