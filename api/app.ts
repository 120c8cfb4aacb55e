import Router from '@koa/router';
import Koa from 'koa';
import { fullPathOf } from '../shared/contract/openapi/describe-operation.ts';
import {
  answersAsStream,
  asksForOwnAccount,
  changesUserData,
  isOfWebArea,
  isUnsafe,
  needsCsrfToken,
  translatesFaults,
  type Operation,
} from '../shared/contract/operation.ts';
import { operations, type OperationId } from '../shared/contract/operations.ts';
import { createChat } from './endpoints/chat.ts';
import { getDescription, getDocs } from './endpoints/description.ts';
import { createEmbeddings } from './endpoints/embeddings.ts';
import { getStats, listRefillLogs, listRequestLogs } from './endpoints/history.ts';
import { getLogsSummary, getModelsStatus } from './endpoints/figures.ts';
import { getFile } from './endpoints/get-file.ts';
import { createImages } from './endpoints/images.ts';
import { streamJobEvents } from './endpoints/job-events.ts';
import { cancelJob, getJob, listJobs } from './endpoints/jobs.ts';
import { getModel, listModels } from './endpoints/models.ts';
import { listServers } from './endpoints/servers.ts';
import { getHealth } from './endpoints/system.ts';
import { openAccount } from './endpoints/open-account.ts';
import { getProfile, redeem, regenerateApiKey } from './endpoints/users.ts';
import {
  createFirstApiAccount,
  getApiAccount,
  linkApiAccount,
  listApiAccounts,
  redeemForApiAccount,
  renameApiAccount,
} from './endpoints/web/accounts.ts';
import { createCaptcha, verifyCaptcha } from './endpoints/web/captcha.ts';
import { getWebConfig } from './endpoints/web/config.ts';
import {
  regenerateKeyOfApiAccount,
  requestRegenerateCode,
  requestRevealCode,
  requestUnlinkCode,
  revealApiKey,
  unlinkApiAccount,
} from './endpoints/web/confirmations.ts';
import { openLinkedAccount } from './endpoints/web/linked-account.ts';
import {
  getWebUser,
  listSessions,
  logOut,
  logOutEverywhere,
  logOutOthers,
  refreshSession,
  revokeSession,
  updateWebUser,
} from './endpoints/web/sessions.ts';
import { requestCode, verifyCode } from './endpoints/web/sign-in.ts';
import { authenticate } from './middleware/authenticate.ts';
import { authenticateSession, forbidCaching } from './middleware/authenticate-session.ts';
import { clearDeadCookies } from './middleware/clear-dead-cookies.ts';
import { checkCsrf } from './middleware/check-csrf.ts';
import { checkOrigin } from './middleware/check-origin.ts';
import { checkHead } from './middleware/check-head.ts';
import { beginInTurns } from './middleware/begin-in-turns.ts';
import { readCreationOptions, refuseAsyncStream } from './middleware/creation-options.ts';
import { limitAccountCalls } from './middleware/limit-account-calls.ts';
import { limitChanges } from './middleware/limit-changes.ts';
import { cors } from './middleware/cors.ts';
import { parseBody } from './middleware/parse-body.ts';
import { noteRefusals } from './middleware/recent-refusals.ts';
import { refuseMethod, refuseMethodOfFixedPath } from './middleware/refuse-method.ts';
import { renderError } from './middleware/render-error.ts';
import {
  refuseDoubledSlash,
  requestContext,
  type ApiMiddleware,
  type RequestState,
} from './middleware/request-context.ts';
import { translateFaults } from './middleware/translate-faults.ts';
import { validate } from './middleware/validate.ts';
import type { Services } from './services.ts';

/** Who serves each operation: one without a handler does not compile. */
function createHandlers(services: Services): Record<OperationId, ApiMiddleware> {
  return {
    createChatCompletion: createChat(services),
    createEmbedding: createEmbeddings(services),
    createImage: createImages(services, 'createImage'),
    editImage: createImages(services, 'editImage'),
    getFile: getFile(services),
    listJobs: listJobs(services),
    getJob: getJob(services),
    cancelJob: cancelJob(services),
    streamJobEvents: streamJobEvents(services),
    listModels: listModels(services),
    getModel: getModel(services),
    getModelsStatus: getModelsStatus(services),
    getProfile: getProfile(services),
    redeemCode: redeem(services),
    listRefillLogs: listRefillLogs(services, openAccount),
    getStats: getStats(services, openAccount),
    listRequestLogs: listRequestLogs(services, openAccount),
    regenerateApiKey: regenerateApiKey(services),
    createCaptcha: createCaptcha(services),
    verifyCaptcha: verifyCaptcha(services),
    requestCode: requestCode(services),
    verifyCode: verifyCode(services),
    getWebUser: getWebUser(services),
    updateWebUser: updateWebUser(services),
    refreshSession: refreshSession(services),
    logOut: logOut(services),
    logOutEverywhere: logOutEverywhere(services),
    logOutOthers: logOutOthers(services),
    listSessions: listSessions(services),
    revokeSession: revokeSession(services),
    listApiAccounts: listApiAccounts(services),
    linkApiAccount: linkApiAccount(services),
    createFirstApiAccount: createFirstApiAccount(services),
    getApiAccount: getApiAccount(services),
    renameApiAccount: renameApiAccount(services),
    unlinkApiAccount: unlinkApiAccount(services),
    requestUnlinkCode: requestUnlinkCode(services),
    requestRevealCode: requestRevealCode(services),
    revealApiKey: revealApiKey(services),
    redeemForApiAccount: redeemForApiAccount(services),
    requestRegenerateCode: requestRegenerateCode(services),
    regenerateKeyOfApiAccount: regenerateKeyOfApiAccount(services),
    listRequestLogsOfApiAccount: listRequestLogs(services, openLinkedAccount),
    listRefillLogsOfApiAccount: listRefillLogs(services, openLinkedAccount),
    getStatsOfApiAccount: getStats(services, openLinkedAccount),
    getLogsSummary: getLogsSummary(services),
    listServers: listServers(services),
    getWebConfig: getWebConfig(services),
    getHealth: getHealth(services),
    getDescription: getDescription(services),
    getDocs: getDocs(services),
  };
}

/** A route for each operation of the contract, and no other. */
export function createRouter(services: Services): Router<RequestState> {
  // Paths are case-sensitive (RFC 3986, 6.2.2.1).
  const router = new Router<RequestState>({ sensitive: true });
  const handlers = createHandlers(services);
  const shared = {
    begin: beginInTurns(),
    limitCalls: limitAccountCalls(),
    limitStreams: limitAccountCalls(),
  };
  // Among paths that match, the first counts: one with a parameter comes after those without.
  const entries = Object.entries(operations).sort(([, a], [, b]) => parametersOf(a) - parametersOf(b));
  for (const [id, operation] of entries) {
    const stack = stackOf(operation, services, shared);
    router[operation.method](toRouterPath(operation), ...stack, handlers[id as OperationId]);
  }
  return router;
}

/** The whole of the HTTP API: what happens to every call, then the operations of the contract. */
export function createApp(services: Services): Koa<RequestState> {
  const app = new Koa<RequestState>();
  const router = createRouter(services);

  const { corsOrigins, trustProxy } = services.config;

  app.use(requestContext(services.log, trustProxy));
  // Before errors are rendered: a page may read them as well.
  if (corsOrigins !== null) app.use(cors(corsOrigins));
  app.use(renderError(services.log));
  app.use(checkHead);
  app.use(refuseDoubledSlash);
  app.use(refuseMethodOfFixedPath);
  app.use(router.routes());
  app.use(refuseMethod);
  app.use(router.allowedMethods());
  // Errors are answered by renderError; what reaches Koa is a broken socket.
  app.on('error', (error: unknown) => services.log.debug({ err: error }, 'connection error'));
  return app;
}

const parametersOf = (operation: Operation): number => operation.path.split('{').length - 1;

/** Steps that count over all operations. */
interface SharedSteps {
  readonly begin: (operationId: string) => ApiMiddleware;
  readonly limitCalls: ApiMiddleware;
  /** Streams of events last for as long as what they tell of: counted apart, they keep no other call out. */
  readonly limitStreams: ApiMiddleware;
}

function stackOf(
  operation: Operation,
  services: Services,
  { begin, limitCalls, limitStreams }: SharedSteps,
): ApiMiddleware[] {
  const stack: ApiMiddleware[] = [];
  if (operation.auth !== 'key') stack.push(begin(operation.operationId));
  if (isOfWebArea(operation)) stack.push(forbidCaching);
  if (translatesFaults(operation)) stack.push(translateFaults);
  if (isOfWebArea(operation) && isUnsafe(operation)) stack.push(checkOrigin(services));
  if (operation.auth === 'key') stack.push(authenticate(services));
  if (operation.acceptsRefreshCookie === true) {
    stack.push(clearDeadCookies(services.config), authenticateSession(services, ['session', 'refresh']));
  } else if (operation.auth === 'web') stack.push(authenticateSession(services));
  const isCreation = operation.modelTypes !== undefined;
  if (isCreation) stack.push(noteRefusals(services.refusals), readCreationOptions);
  if (asksForOwnAccount(operation)) stack.push(answersAsStream(operation) ? limitStreams : limitCalls);
  if (needsCsrfToken(operation)) stack.push(checkCsrf);
  if (changesUserData(operation)) stack.push(limitChanges(services));
  if (operation.body !== undefined) stack.push(parseBody(operation, services));
  stack.push(validate(operation));
  if (isCreation) stack.push(refuseAsyncStream);
  return stack;
}

/** `/models/{model_id}` as the router writes it; a model's id may hold slashes. */
function toRouterPath(operation: Operation): string {
  return fullPathOf(operation)
    .replace('{model_id}', '*model_id')
    .replaceAll(/\{(\w+)\}/g, ':$1');
}
