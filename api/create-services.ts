import { ApiKeyStore } from '../shared/accounts/api-key-store.ts';
import type { Config } from '../shared/platform/config/config.ts';
import { watchBudgets } from '../shared/operator/watch-budgets.ts';
import { watchDemand } from './operator/watch-demand.ts';
import { RecentReading } from './operator/recent-reading.ts';
import { readUpstreams, watchUpstreams } from './operator/watch-upstreams.ts';
import type { ConditionBoard } from './operator/conditions/condition-board.ts';
import { readDemand } from '../shared/work/demand/read-demand.ts';
import { FairBudget } from '../shared/fairness/fair-budget.ts';
import { Holdings } from '../shared/fairness/holdings.ts';
import { HistoryStore } from './endpoints/users/history-store.ts';
import { RefillListStore } from '../shared/ledger/refill-list-store.ts';
import { RequestLogStore } from '../shared/ledger/request-log-store.ts';
import { ReasoningStore } from '../shared/work/reasoning-store.ts';
import { SignupGrantStore } from '../shared/accounts/signup-grant-store.ts';
import type { ProcessMetrics } from '../shared/platform/metrics/process-metrics.ts';
import { RequestMetrics } from './http/responses/request-metrics.ts';
import type { Logger } from '../shared/platform/runtime/logger.ts';
import { within } from '../shared/platform/runtime/within.ts';
import type { Tracing } from '../shared/platform/tracing/tracing.ts';
import type { Stores } from '../shared/stores/open-stores.ts';
import { createTrafficCache } from './endpoints/admin/overview/traffic-cache.ts';
import { StatsCache } from './endpoints/public/stats-cache.ts';
import type { RequestStatsStore } from '../shared/ledger/request-stats-store.ts';
import { TrafficStore } from '../shared/ledger/traffic-store.ts';
import { AdminTokenStore } from '../shared/admin/admin-token-store.ts';
import { AdminAccess } from './admin/admin-access.ts';
import { FundedAccounts } from './admission/funded-accounts.ts';
import { KeyAccessCache } from './admission/key-access-cache.ts';
import { RecentRejections } from './admission/recent-rejections.ts';
import { RejectionLog } from './admission/rejection-log.ts';
import { RejectedBodies } from './admission/rejected-bodies.ts';
import { UnpaidTime } from './http/callers/unpaid-time.ts';
import { Batches } from '../shared/work/batches/batches.ts';
import { FileStore } from '../shared/work/files/file-store.ts';
import { Captcha } from './account-area/captcha/captcha.ts';
import type { Dispatch } from './requests/dispatch/create-dispatch.ts';
import { DocumentReader } from '../shared/preparing/documents/document-reader.ts';
import { SystemReader } from './operator/conditions/system-reader.ts';
import { JobPolls } from './jobs/job-polls.ts';
import type { ApiOptions } from './options.ts';
import { readFromRedis } from './http/request/read-turns.ts';
import type { Services } from './services.ts';
import { reportFindings } from '../shared/doctor/finding.ts';
import { runDoctor } from '../shared/doctor/run-doctor.ts';
import { loadBrandFiles } from './pages/site/brand-files.ts';
import { EmailCodeStore } from './account-area/email-code-store.ts';
import { GrantQuota } from './account-area/grant-quota.ts';
import { Limits } from './account-area/limits.ts';
import { SessionAccounts } from './account-area/session-accounts.ts';
import { SignupGrants } from './account-area/signup-grants.ts';

/**
 * Half of the object store client's connections, so that some remain available for health checks and stored responses.
 */
const maxDownloadReads = 24;
/**
 * Each database turn runs at most two queries at the same time. With 8 turns that is 16, so some of the pool's 20
 * connections always remain available.
 */
const maxDatabaseTurns = 8;
/** Uploads of an account that wait for memory; further ones fail. */
const maxWaitingUploads = 16;
/** Two lists may keep Redis and the event loop busy. Single reads take a fraction of a millisecond of each. */
const maxRedisTurns = 8;

/**
 * Time that a stopping process has to record completed actions and queue their notices. Workers finish the remaining
 * ones.
 */
const recordingTimeoutMs = 5_000;

/** Each check of the set-up opens its own connections, so calls within this time share one. */
const doctorValidMs = 5_000;

export interface ServicesParts {
  readonly config: Config;
  /** Only for checks of the set-up: everything else takes the configuration. */
  readonly env: NodeJS.ProcessEnv;
  readonly stores: Stores;
  readonly metrics: ProcessMetrics;
  readonly writeMetrics: Services['writeMetrics'];
  readonly dispatch: Dispatch;
  readonly responseMemory: FairBudget;
  readonly requestStatsStore: RequestStatsStore;
  readonly board: ConditionBoard;
  readonly options: ApiOptions;
  readonly tracing: Tracing | null;
  readonly log: Logger;
}

export interface RunningServices {
  readonly services: Services;
  /** Call this when no more requests are served, and before the stores are closed. */
  readonly close: () => Promise<void>;
}

/** Creates the dependencies of middleware and endpoints. */
export function createServices(parts: ServicesParts): RunningServices {
  const { config, env, stores, metrics, writeMetrics, dispatch, responseMemory, requestStatsStore } = parts;
  const { board, options, tracing, log } = parts;
  const { redis, mongo, objects, catalog, accounts, hotAccounts, ledger, codes, mails } = stores;
  const captcha = new Captcha({ redis, log });
  const documents = new DocumentReader(log);
  const unfinished = new Set<Promise<void>>();
  const redisTurns = new FairBudget({ capacity: maxRedisTurns });
  const limits = new Limits(redis, config.masterKey);
  const services: Services = {
    ...dispatch,
    config,
    log,
    metrics,
    writeMetrics,
    requestMetrics: new RequestMetrics(metrics),
    tracing,
    demand: new RecentReading('reading the demand', () => readDemand({ redis, catalog })),
    upstreams: new RecentReading('reading the state of upstreams', () => readUpstreams({ redis, catalog })),
    conditions: board,
    doctor: new RecentReading(
      'checking the set-up',
      () => reportFindings(() => runDoctor(env)),
      doctorValidMs,
    ),
    system: new SystemReader({ redis, mongo, objects, catalog, workers: dispatch.workers }),
    isStopping: false,
    redis,
    mongo,
    objects,
    files: new FileStore(redis),
    catalog,
    accounts,
    apiKeys: new ApiKeyStore(redis, accounts, { waitMs: options.keyWaitMs }),
    hotAccounts,
    accountWaitMs: options.accountWaitMs,
    firstCommentMs: options.firstCommentMs,
    databaseWaitMs: options.databaseWaitMs,
    calls: { short: new Holdings(), streams: new Holdings() },
    keyAccess: new KeyAccessCache(hotAccounts, options.accountWaitMs),
    recentRejections: new RecentRejections(),
    rejections: new RejectionLog({
      store: ledger.rejections,
      metrics,
      log,
      flushMs: options.rejectionFlushMs,
    }),
    rejectedBodies: new RejectedBodies({ log }),
    funded: new FundedAccounts(hotAccounts),
    sessionAccounts: new SessionAccounts(stores.web),
    unpaidTime: new UnpaidTime({ log }),
    codes,
    brand: loadBrandFiles(config.pages),
    web: {
      ...stores.web,
      captcha,
      emailCodes: new EmailCodeStore(redis, config.masterKey),
      grants: new SignupGrants({
        config,
        quota: new GrantQuota(redis, config),
        store: new SignupGrantStore(mongo.db),
      }),
      limits,
      mails,
      unfinished,
    },
    admin: new AdminAccess({ config, redis, store: new AdminTokenStore(mongo.db, redis), limits, log }),
    ledger,
    prices: stores.prices,
    history: new HistoryStore(ledger),
    refills: new RefillListStore(ledger, redis),
    requestLog: new RequestLogStore(ledger, stores.prices),
    requestMemory: new FairBudget({ capacity: options.requestMemoryBytes }),
    uploadMemory: new FairBudget({
      capacity: options.uploadMemoryBytes,
      maxWaitingPerHolder: maxWaitingUploads,
    }),
    bodyTimes: options.bodyTimes,
    reasoning: new ReasoningStore(redis, log),
    documents,
    batches: new Batches(redis, config.maxUnfinishedBatches, log),
    responseMemory,
    downloads: new FairBudget({ capacity: options.maxDownloads }),
    downloadReads: new FairBudget({ capacity: maxDownloadReads }),
    redisTurns,
    jobPolls: new JobPolls((requester, ids) =>
      readFromRedis({ redisTurns }, { requester }, 'list', () =>
        dispatch.durableJobs.findMany(requester, ids),
      ),
    ),
    databaseTurns: new FairBudget({ capacity: maxDatabaseTurns }),
    modelStats: new StatsCache({ read: () => requestStatsStore.readModels(), log }),
    hourlyStats: new StatsCache({ read: () => requestStatsStore.readHours(), log }),
    traffic: createTrafficCache(new TrafficStore(redis), options.statsStepMs, log),
    totalStats: new StatsCache({ read: () => requestStatsStore.readTotals(), log }),
    publicUrl: '',
  };
  watchDemand(metrics, { demand: services.demand, catalog });
  watchUpstreams(metrics, services.upstreams);
  watchBudgets(metrics, {
    requests: services.requestMemory,
    uploads: services.uploadMemory,
    responses: responseMemory,
  });
  return {
    services,
    async close() {
      await documents.close();
      await within(
        recordingTimeoutMs,
        Promise.allSettled([...unfinished, services.rejections.close()]),
        () => undefined,
      );
      await captcha.close();
    },
  };
}
