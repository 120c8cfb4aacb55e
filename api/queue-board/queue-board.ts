import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { createBullBoard } from '@bull-board/api';
import type { BullBoardRequest } from '@bull-board/api/dist/types.js';
import Router from '@koa/router';
import compose from 'koa-compose';
import { hashSecret } from '../../shared/accounts/credentials.ts';
import { mailQueueName } from '../../shared/account-area/mail-queue.ts';
import { AppError } from '../../shared/contract/errors.ts';
import { hasBearerToken, hasPassword } from '../../shared/operator/operator-token.ts';
import { callRedis, type RedisClient } from '../../shared/platform/redis/redis-client.ts';
import { stripTrailing } from '../../shared/platform/runtime/strip-trailing.ts';
import { bullQueues } from '../../shared/work/queue/job-kinds.ts';
import { openBullQueue } from '../../shared/work/queue/open-bull-queue.ts';
import { webhookQueueName } from '../../shared/work/webhook-delivery.ts';
import type { WrongTokens } from '../admin/wrong-tokens.ts';
import { callerNetwork } from '../http/callers/caller-network.ts';
import { beginInTurns } from '../http/middleware/begin-in-turns.ts';
import { meterWork } from '../http/middleware/meter-work.ts';
import type { ApiContext, ApiMiddleware, RequestState } from '../http/request/context.ts';
import { readQueryString } from '../http/request/read-query-string.ts';
import { BoardFiles } from './board-files.ts';
import { contentSecurityPolicy, renderBoard } from './board-page.ts';
import { BoardQueue } from './board-queue.ts';
import { BoardServer } from './board-server.ts';
import type { BoardItem } from './describe-item.ts';

export const boardPath = '/admin/queues';

const queueNames = [...Object.values(bullQueues).flat(), mailQueueName, webhookQueueName];

/** Items that a page may list. Each is read whole, and has up to 64 KB. */
const maxJobsPerPage = 20;
/** The page is the same until the next version. Its files have other names then, except translations and icons. */
const fileCacheControl = 'private, max-age=3600';

export interface QueueBoardOptions {
  readonly redis: RedisClient;
  readonly adminToken: string;
  /** Counts wrong tokens by network. */
  readonly wrongTokens: Pick<WrongTokens, 'check' | 'count'>;
  /** Whether the caller has a session of the console. With any scope: the board changes nothing. */
  readonly hasSession: (context: ApiContext) => Promise<boolean>;
  /** Null if there is none. Its path comes before that of the board in a browser. */
  readonly publicUrl: string | null;
}

export interface QueueBoard {
  /** Serves the board's paths, and calls `next` for all others. */
  readonly middleware: ApiMiddleware;
  close(): Promise<void>;
}

/**
 * Opens Bull Board: a page that shows BullMQ's queues to operators. It is read-only, and shows nothing that callers
 * wrote. Load this module only if there is an `ADMIN_TOKEN`, because its packages take memory.
 */
export async function openQueueBoard({
  redis,
  adminToken,
  wrongTokens,
  hasSession,
  publicUrl,
}: QueueBoardOptions): Promise<QueueBoard> {
  const queues = queueNames.map((name) => openBullQueue<BoardItem>(name, redis));
  const server = new BoardServer();
  createBullBoard({
    queues: queues.map((queue) => new BoardQueue(queue, redis)),
    serverAdapter: server,
    options: {
      uiBasePath: dirname(createRequire(import.meta.url).resolve('@bull-board/ui/package.json')),
      uiConfig: {
        boardTitle: 'Queues',
        hideDocsLink: true,
        // Each poll would list all connections of Redis, once for each queue.
        showWorkers: false,
        showMetrics: false,
      },
    },
  });
  const router = await createBoardRouter(server, publicUrl);
  const operationId = 'queueBoard';
  const serve = compose(
    [
      beginInTurns(null, { operationId }),
      authenticate({ adminToken, wrongTokens, hasSession }),
      rejectWrites,
      router,
    ].map(meterWork),
  );
  return {
    middleware: (context, next) =>
      isBoardPath(context.path) ? serve(context, () => Promise.resolve()) : next(),
    async close() {
      await Promise.all(queues.map((queue) => queue.close()));
    },
  };
}

const isBoardPath = (path: string): boolean => path === boardPath || path.startsWith(`${boardPath}/`);

function authenticate({
  adminToken,
  wrongTokens,
  hasSession,
}: Pick<QueueBoardOptions, 'adminToken' | 'wrongTokens' | 'hasSession'>): ApiMiddleware {
  return async (context, next) => {
    context.set({
      'cache-control': 'no-store',
      'x-robots-tag': 'noindex, nofollow',
      'x-content-type-options': 'nosniff',
      'referrer-policy': 'no-referrer',
      'cross-origin-resource-policy': 'same-origin',
    });
    const { authorization = '' } = context.req.headers;
    const isRight = hasBearerToken(authorization, adminToken) || hasPassword(authorization, adminToken);
    if (isRight) await wrongTokens.check(callerNetwork(context.ip));
    else if (authorization !== '' || !(await hasSession(context))) {
      // Browsers first ask without a token.
      if (authorization !== '') await wrongTokens.count(callerNetwork(context.ip), hashSecret(authorization));
      throw new AppError('invalid_api_key', {
        message:
          'The admin token is missing or wrong. Send it as "Authorization: Bearer <ADMIN_TOKEN>", or sign in with any user name and the token as the password.',
        messageRu:
          'Токен администратора не указан или неверен. Передайте его в заголовке «Authorization: Bearer <ADMIN_TOKEN>» или войдите с любым именем и этим токеном в качестве пароля.',
        headers: { 'www-authenticate': 'Basic realm="model-gateway for operators", charset="UTF-8"' },
      });
    }
    await next();
  };
}

const rejectWrites: ApiMiddleware = async ({ method }, next) => {
  if (method !== 'GET' && method !== 'HEAD') {
    throw new AppError('method_not_allowed', {
      message: `The queue board is read-only and does not support ${method}. Use "npm run -s admin -- queue".`,
      headers: { allow: 'GET, HEAD' },
    });
  }
  await next();
};

/** Serves the page, its files, and the operations of the board that read. */
async function createBoardRouter(server: BoardServer, publicUrl: string | null): Promise<ApiMiddleware> {
  const { entry, apiRoutes, queues, uiConfig, staticPath, viewsPath } = server;
  const basePath = `${publicUrl === null ? '' : stripTrailing(new URL(publicUrl).pathname, '/')}${boardPath}`;
  const { name, params } = entry!.handler({ basePath, uiConfig });
  const page = renderBoard(await readFile(join(viewsPath, name), 'utf8'), {
    basePath: params['basePath']!,
    title: params['title']!,
    uiConfig: params['uiConfig']!,
    icon: params['favIconDefault']!,
  });
  const files = await BoardFiles.open(staticPath);
  const router = new Router<RequestState>({ prefix: boardPath, sensitive: true });
  for (const path of [entry!.route].flat()) {
    router.get(path, (context) => {
      context.set('content-security-policy', contentSecurityPolicy);
      context.type = 'text/html; charset=utf-8';
      context.body = page;
    });
  }
  router.get('/static/*path', async (context) => {
    const file = await files.read(context.path.slice(`${boardPath}/static/`.length));
    if (file === null) return;
    context.set('cache-control', fileCacheControl);
    context.set('content-type', file.contentType);
    context.body = file.bytes;
  });
  for (const apiRoute of apiRoutes.filter(({ method }) => [method].flat().includes('get'))) {
    for (const path of [apiRoute.route].flat()) {
      router.get(path, async (context) => {
        const request: BullBoardRequest = {
          queues,
          uiConfig,
          params: context.params,
          query: readBoardQuery(context),
          body: {},
          headers: {},
        };
        const { status = 200, body } = await callRedis(async () => await apiRoute.handler(request));
        context.status = status;
        context.body = body;
      });
    }
  }
  // The router adds the parameters of the path to the context by itself.
  return router.routes() as unknown as ApiMiddleware;
}

/** Takes the first of repeated parameters, only known queues, and limits how many items are read. */
function readBoardQuery(context: ApiContext): Record<string, string> {
  const { activeQueue, jobsPerPage, ...others } = Object.fromEntries(
    Object.entries(readQueryString(context.querystring)).map(([name, value]) => [name, [value].flat()[0]!]),
  );
  const isTooMany = Number(jobsPerPage) > maxJobsPerPage;
  return {
    ...others,
    // The board decodes this once more, which throws for a name like `%`.
    ...(activeQueue !== undefined && isQueueName(activeQueue) ? { activeQueue } : {}),
    ...(jobsPerPage === undefined ? {} : { jobsPerPage: isTooMany ? String(maxJobsPerPage) : jobsPerPage }),
  };
}

const isQueueName = (name: string): boolean => (queueNames as readonly string[]).includes(name);
