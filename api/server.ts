// decision 0020
import { BanWatch } from '../shared/money/ban-watch.ts';
import { startRequestHeartbeat } from '../shared/money/heartbeat-requests.ts';
import type { Config } from '../shared/platform/config/config.ts';
import { AppError } from '../shared/contract/errors.ts';
import type { Operation } from '../shared/contract/operation.ts';
import { operations } from './contract/operations.ts';
import { startProcessHeartbeat } from '../shared/operator/process-heartbeat.ts';
import { reportSetup } from '../shared/doctor/report-setup.ts';
import { FairBudget } from '../shared/fairness/fair-budget.ts';
import { loadTokenizer } from '../shared/catalog/count-tokens.ts';
import { loadTokenDecoder } from '../shared/preparing/tokens/decode-tokens.ts';
import { redisChannels } from '../shared/platform/redis/redis-keys.ts';
import { ProcessMetrics } from '../shared/platform/metrics/process-metrics.ts';
import { productBuild, productVersion } from '../shared/platform/runtime/product-version.ts';
import { UsageMetrics } from '../shared/ledger/usage-metrics.ts';
import type { Running } from '../shared/platform/runtime/lifecycle.ts';
import type { Logger } from '../shared/platform/runtime/logger.ts';
import { runInBackground } from '../shared/platform/runtime/run-in-background.ts';
import { openTracing } from '../shared/platform/tracing/open-tracing.ts';
import { listenToChanges } from '../shared/stores/listen-to-changes.ts';
import { openStores } from '../shared/stores/open-stores.ts';
import { RequestStatsRecorder } from '../shared/ledger/request-stats-recorder.ts';
import { RequestStatsStore } from '../shared/ledger/request-stats-store.ts';
import { TrafficStore } from '../shared/ledger/traffic-store.ts';
import { createApp } from './app.ts';
import { maxBodyMs } from './http/bodies/body-pace.ts';
import { warnOfHiddenCallers } from './http/callers/warn-of-hidden-callers.ts';
import { HttpConnections } from './http/connections/http-connections.ts';
import { limitConnections } from './http/connections/open-files.ts';
import { createServices } from './create-services.ts';
import { createDispatch } from './requests/dispatch/create-dispatch.ts';
import { findMemoryBlockers } from './requests/replies/response-memory.ts';
import { corsHeaders } from './http/middleware/cors.ts';
import type { ApiContext, ApiMiddleware } from './http/request/context.ts';
import { defaultApiOptions, type ApiOptions } from './options.ts';
import { openSite } from './pages/site/open-site.ts';
import { readCookie } from './http/request/session-cookies.ts';
import type { QueueBoard } from './queue-board/queue-board.ts';
import { ConditionBoard } from './operator/conditions/condition-board.ts';
import { ignoreAbsences, reportAbsences } from './operator/conditions/report-absences.ts';
import { watchConditions } from './operator/alerts/watch-conditions.ts';
import type { ProcessGroup } from './process-group.ts';
import type { Services } from './services.ts';

export interface RunningApi extends Required<Running> {
  /** The origin it listens on, without a trailing slash. */
  readonly url: string;
}

const maxBodyLimitBytes = Math.max(
  ...Object.values<Operation>(operations).map((operation) => operation.bodyLimitBytes ?? 0),
);

/**
 * Starts an api process: opens its stores, creates its services and listens.
 * @param processGroup if it shares its port with other processes
 */
export async function startApi(
  config: Config,
  env: NodeJS.ProcessEnv,
  log: Logger,
  overrides: Partial<ApiOptions> = {},
  processGroup: ProcessGroup | null = null,
): Promise<RunningApi> {
  const options = { ...defaultApiOptions, ...overrides };
  const metrics = new ProcessMetrics({ role: 'api', version: productVersion, build: productBuild });
  const tracing = await openTracing(config.tracing, 'api', log);
  const stores = await openStores(config, env, log, metrics);
  const { redis, subscriber, hotAccounts, catalog } = stores;
  processGroup?.shareMetrics(metrics);
  const responseMemory = new FairBudget({ capacity: options.responseMemoryBytes });
  const requestStatsStore = new RequestStatsStore(redis, { stepMs: options.statsStepMs });
  const requestStats = new RequestStatsRecorder({
    stats: requestStatsStore,
    traffic: new TrafficStore(redis),
    log,
    trafficIntervalMs: options.trafficIntervalMs,
  });
  const board = new ConditionBoard(metrics, log);
  const runningDispatch = createDispatch(stores, {
    responseMemory,
    requestStats,
    usageMetrics: new UsageMetrics(metrics),
    noWorkerTimeoutMs: options.noWorkerTimeoutMs,
    absenceReport: config.expectsWorkers ? reportAbsences(board) : ignoreAbsences(board),
    log,
  });
  const { dispatch, reservations } = runningDispatch;
  const runningServices = createServices({
    config,
    env,
    stores,
    metrics,
    writeMetrics: () => processGroup?.writeMetrics() ?? metrics.write(),
    dispatch,
    responseMemory,
    requestStatsStore,
    board,
    options,
    tracing,
    log,
  });
  const { services } = runningServices;
  const bans = new BanWatch({
    hotAccounts,
    listAccounts: runningDispatch.accounts,
    endAccount: (accountId) => runningDispatch.endAccount(accountId, new AppError('account_banned')),
    log,
  });
  const presence = startProcessHeartbeat(redis, 'api', log);
  const heartbeat = startRequestHeartbeat(reservations, runningDispatch.heartbeatRequests, log);
  listenToChanges(stores, {
    bans,
    onAccountChange: (accountId) => {
      services.apiKeys.drop(accountId);
      services.keyAccess.drop(accountId);
    },
    log,
  });
  const onTokenChange = (): void => services.admin.tokens.invalidate();
  subscriber.listen(redisChannels.adminTokens, {
    onMessage: onTokenChange,
    onLost: onTokenChange,
    onRestored: onTokenChange,
  });
  const queueBoard = await openBoard(services);
  const pages = [queueBoard?.middleware ?? null, await openSite(services)].filter((page) => page !== null);
  const connections = createConnections(services, options, pages);
  warnOfHiddenCallers(config, log);
  // All api processes listen to this channel, so that they can count each other by publishing to it.
  subscriber.listen(redisChannels.apis, { onMessage: () => undefined });
  await subscriber.start();
  const url = await connections.listen(config.host, config.port);
  services.publicUrl = config.publicUrl ?? url;
  if (options.preloadsVocabularies) {
    // Load these in the background now. Otherwise the first request would wait for them.
    setImmediate(loadTokenizer);
    setImmediate(loadTokenDecoder);
  }
  const conditions = watchConditions(services, board, options);
  if (options.reportsSetup)
    runInBackground(reportSetup({ ...stores, config, env }, log), 'checking the set-up', log);
  let closing: Promise<void> | null = null;
  let handingBack: Promise<void> | null = null;
  log.info({ url }, 'api ready');

  return {
    url,
    async stop() {
      services.isStopping = true;
      closing = connections.stop();
      // An alert that is being sent must not delay the rest.
      await Promise.all([conditions.stop(), closing, runningDispatch.drain(closing)]);
      await handingBack;
      await queueBoard?.close();
      await runningDispatch.close();
      await Promise.all([heartbeat.stop(), presence.stop()]);
      await bans.stop();
      catalog.close();
      await requestStats.stop();
      await runningServices.close();
      await Promise.all([stores.close(), tracing?.stop()]);
    },
    async handBack() {
      handingBack = runningDispatch.failCallers();
      await Promise.all([closing, handingBack]);
    },
  };
}

/** Loads the packages of the board only if somebody may see it. */
async function openBoard({ admin, config, redis }: Services): Promise<QueueBoard | null> {
  const { adminToken, publicUrl } = config;
  if (adminToken === null) return null;
  const { openQueueBoard } = await import('./queue-board/queue-board.ts');
  const { wrongTokens } = admin;
  const hasSession = async (context: ApiContext): Promise<boolean> => {
    const cookie = readCookie(context, config, 'admin');
    return cookie !== null && (await admin.findBySession(cookie)) !== null;
  };
  return await openQueueBoard({ redis, adminToken, wrongTokens, hasSession, publicUrl });
}

function createConnections(
  services: Services,
  { maxStallMs, idleGraceMs }: ApiOptions,
  pages: readonly ApiMiddleware[],
): HttpConnections {
  const { config, log } = services;
  const handle = createApp(services, pages).callback();
  return new HttpConnections({
    keepAliveTimeoutMs: config.keepAliveTimeoutMs,
    // The time limit of a body depends on its length. Node would abort a large one after five minutes, however fast it
    // is.
    requestTimeoutMs: maxBodyMs(Math.max(maxBodyLimitBytes, config.files.maxFileBytes)),
    limit: limitConnections(config, log),
    isProxied: config.trustProxy,
    maxStallMs,
    idleGraceMs,
    findMemoryBlockers,
    corsHeaders: (origin) => corsHeaders(config.corsOrigins, origin),
    handle: (request, response) => runInBackground(handle(request, response), 'handling a request', log),
    log,
  });
}
