import Router from '@koa/router';
import Koa from 'koa';
import compose from 'koa-compose';
import { fullPathOf } from './description/describe-operation.ts';
import type { Operation } from '../shared/contract/operation.ts';
import type { operations, OperationId } from './contract/operations.ts';
import { createStack, type Endpoint } from './endpoint.ts';
import { createChatCompletion } from './endpoints/chat/chat.ts';
import { getDescription } from './endpoints/public/description.ts';
import { createEmbedding } from './endpoints/embeddings/embeddings.ts';
import { getLogsSummary, getModelsHistory, getModelsStatus } from './endpoints/public/request-stats.ts';
import { createFile } from './endpoints/files/create-file.ts';
import { downloadFile } from './endpoints/files/download-file.ts';
import { estimateFileCost } from './endpoints/files/estimate-file-cost.ts';
import { deleteFile, listFiles, retrieveFile } from './endpoints/files/files.ts';
import { getFile } from './endpoints/files/get-file.ts';
import {
  getStats,
  getStatsOfApiAccount,
  listRefillLogs,
  listRefillLogsOfApiAccount,
  listRequestLogs,
  listRequestLogsOfApiAccount,
} from './endpoints/users/history.ts';
import { createImage, editImage } from './endpoints/images/images.ts';
import { streamBatchEvents } from './endpoints/batches/batch-events.ts';
import { cancelBatch, getBatch, listBatches } from './endpoints/batches/batches.ts';
import { createBatch } from './endpoints/batches/create-batch.ts';
import { retryBatch } from './endpoints/batches/retry-batch.ts';
import { streamJobEvents } from './endpoints/jobs/job-events.ts';
import { streamJobOutput } from './endpoints/jobs/job-stream.ts';
import { deleteJobResponse } from './endpoints/jobs/job-response.ts';
import { cancelJob, cancelJobByPost, getJob, listJobs } from './endpoints/jobs/jobs.ts';
import { getModel, listModels } from './endpoints/public/models.ts';
import { listServers } from './endpoints/public/servers.ts';
import { adminEndpoints } from './endpoints/admin/admin-endpoints.ts';
import { hideAdmin } from './endpoints/admin/authenticate-admin.ts';
import { getDemand } from './endpoints/admin/demand.ts';
import { getMetrics } from './endpoints/operator/metrics.ts';
import { getLiveness, getReadiness } from './endpoints/operator/probes.ts';
import { getHealth } from './endpoints/public/system.ts';
import { getProfile, redeem, regenerateApiKey } from './endpoints/users/users.ts';
import {
  createFirstApiAccount,
  getApiAccount,
  linkApiAccount,
  listApiAccounts,
  redeemForApiAccount,
  renameApiAccount,
} from './account-area/endpoints/accounts.ts';
import { createCaptcha, verifyCaptcha } from './account-area/endpoints/captcha.ts';
import { getWebConfig } from './account-area/endpoints/config.ts';
import {
  regenerateKeyOfApiAccount,
  requestRegenerateCode,
  requestRevealCode,
  requestUnlinkCode,
  revealApiKey,
  unlinkApiAccount,
} from './account-area/endpoints/confirmations.ts';
import {
  getWebUser,
  listSessions,
  logOut,
  logOutEverywhere,
  logOutOthers,
  refreshSession,
  revokeSession,
  updateWebUser,
} from './account-area/endpoints/sessions.ts';
import { requestCode, verifyCode } from './account-area/endpoints/sign-in.ts';
import { checkHead } from './http/middleware/check-head.ts';
import { cors } from './http/middleware/cors.ts';
import { meterRequests } from './http/middleware/meter-work.ts';
import {
  isFixedPath,
  methodsOf,
  rejectMethod,
  rejectMethodOfFixedPath,
  supportsMethod,
} from './http/middleware/reject-method.ts';
import { renderError } from './http/middleware/render-error.ts';
import { rejectDoubledSlash, requestContext } from './http/middleware/request-context.ts';
import type { ApiMiddleware, RequestState } from './http/request/context.ts';
import type { Services } from './services.ts';

/** The endpoint of each operation. If one is missing or belongs to another operation, this does not compile. */
export const endpoints: { readonly [Id in OperationId]: Endpoint<(typeof operations)[Id]> } = {
  createChatCompletion,
  createEmbedding,
  createImage,
  editImage,
  getFile,
  listJobs,
  getJob,
  cancelJob,
  cancelJobByPost,
  deleteJobResponse,
  streamJobEvents,
  streamJobOutput,
  createBatch,
  listBatches,
  getBatch,
  cancelBatch,
  retryBatch,
  streamBatchEvents,
  createFile,
  listFiles,
  retrieveFile,
  downloadFile,
  deleteFile,
  estimateFileCost,
  listModels,
  getModel,
  getModelsStatus,
  getModelsHistory,
  getProfile,
  redeemCode: redeem,
  listRefillLogs,
  getStats,
  listRequestLogs,
  regenerateApiKey,
  createCaptcha,
  verifyCaptcha,
  requestCode,
  verifyCode,
  getWebUser,
  updateWebUser,
  refreshSession,
  logOut,
  logOutEverywhere,
  logOutOthers,
  listSessions,
  revokeSession,
  listApiAccounts,
  linkApiAccount,
  createFirstApiAccount,
  getApiAccount,
  renameApiAccount,
  unlinkApiAccount,
  requestUnlinkCode,
  requestRevealCode,
  revealApiKey,
  redeemForApiAccount,
  requestRegenerateCode,
  regenerateKeyOfApiAccount,
  listRequestLogsOfApiAccount,
  listRefillLogsOfApiAccount,
  getStatsOfApiAccount,
  getLogsSummary,
  listServers,
  getWebConfig,
  getHealth,
  getLiveness,
  getReadiness,
  getMetrics,
  getDemand,
  ...adminEndpoints,
  getDescription,
};

/** An operation and the middleware that serves it, as one function. */
interface Served {
  readonly operation: Operation;
  readonly serve: ApiMiddleware;
}

/** Lists the operations of the contract. Those with parameters in their paths come after those without. */
export const serveOperations = (services: Services): Served[] =>
  Object.values<Endpoint>(endpoints)
    .map((endpoint) => ({
      operation: endpoint.operation,
      serve: compose(createStack(endpoint, services)),
    }))
    .toSorted((a, b) => parametersOf(a.operation) - parametersOf(b.operation));

/** Creates exactly one route for each operation. The first matching path wins. */
export function createRouter(served: readonly Served[]): Router<RequestState> {
  // Paths are case-sensitive (RFC 3986, 6.2.2.1).
  const router = new Router<RequestState>({ sensitive: true });
  for (const { operation, serve } of served) router[operation.method](toRouterPath(operation), serve);
  return router;
}

/** Serves paths without parameters by a look-up, because the router compares a path with one route after the other. */
function serveFixedPaths(served: readonly Served[]): ApiMiddleware {
  const byMethodAndPath = new Map<string, ApiMiddleware>();
  for (const { operation, serve } of served) {
    if (parametersOf(operation) > 0) continue;
    for (const method of methodsOf(operation))
      byMethodAndPath.set(`${method} ${fullPathOf(operation)}`, serve);
  }
  return (context, next) => {
    const serve = byMethodAndPath.get(`${context.method} ${context.path}`);
    return serve === undefined ? next() : serve(context, endOfStack);
  };
}

/** Whether an operation is served with this method and path. */
const findsOperation =
  (router: Router<RequestState>) =>
  (method: string, path: string): boolean =>
    isFixedPath(path) ? supportsMethod(path, method) : router.match(path, method).route;

const endOfStack = (): Promise<void> => Promise.resolve();

/**
 * Creates the HTTP API: the middleware for every call, then the operations of the contract.
 * @param pages serve what no operation of the contract describes: pages for operators, and those for customers
 */
export function createApp(services: Services, pages: readonly ApiMiddleware[] = []): Koa<RequestState> {
  const app = new Koa<RequestState>();
  const served = serveOperations(services);
  const router = createRouter(served);

  const { corsOrigins, trustProxy } = services.config;

  const { requestMetrics: metrics, rejections, facts } = services;
  app.use(requestContext(services.log, { trustsProxy: trustProxy, metrics, rejections, facts }));
  // Comes before the error middleware, so that pages can read errors too.
  if (corsOrigins !== null) app.use(cors(corsOrigins));
  app.use(renderError(services.log, services.config.supportEmail));
  app.use(meterRequests(services));
  app.use(checkHead);
  app.use(rejectDoubledSlash);
  for (const page of pages) app.use(page);
  app.use(hideAdmin(services, findsOperation(router)));
  app.use(rejectMethodOfFixedPath);
  app.use(serveFixedPaths(served));
  app.use(router.routes());
  app.use(rejectMethod);
  app.use(router.allowedMethods());
  // `renderError` handles all errors except those of broken sockets.
  app.on('error', (error: unknown) => services.log.debug({ err: error }, 'connection error'));
  return app;
}

const parametersOf = (operation: Operation): number => operation.path.split('{').length - 1;

/** Converts a path such as `/models/{model_id}` to the router's syntax. A model's id may contain slashes. */
function toRouterPath(operation: Operation): string {
  return fullPathOf(operation)
    .replace('{model_id}', '*model_id')
    .replaceAll(/\{(\w+)\}/g, ':$1');
}
