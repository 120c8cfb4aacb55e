import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import test, { type ExecutionContext } from 'ava';
import Koa from 'koa';
import { limitAccountCalls } from '../../../../api/http/middleware/limit-account-calls.ts';
import { renderError } from '../../../../api/http/middleware/render-error.ts';
import type { RequestState } from '../../../../api/http/request/context.ts';
import { requestContext } from '../../../../api/http/middleware/request-context.ts';
import { maxCallsPerAccount } from '../../../../shared/contract/operation.ts';
import { Holdings } from '../../../../shared/fairness/holdings.ts';
import { createLogger } from '../../../../shared/platform/runtime/logger.ts';
import type { WebSession } from '../../../../shared/account-area/web-models.ts';
import { waitFor } from '../../../support/wait-for.ts';

interface TestServer {
  readonly url: string;
  /** The number of calls that have started. */
  readonly started: () => number;
  /** Lets started and future calls complete. */
  readonly release: () => void;
}

/** An api whose only operation waits until the test releases it. The key is an account name, or `user/session`. */
async function serve(t: ExecutionContext): Promise<TestServer> {
  let started = 0;
  let release = (): void => undefined;
  const released = new Promise<void>((resolve) => {
    release = resolve;
  });
  const app = new Koa<RequestState>();
  const log = createLogger('test', 'silent');
  app.use(requestContext(log)).use(renderError(log));
  app.use(async (context, next) => {
    const [name, sessionId] = context.get('authorization').split('/');
    if (sessionId === undefined) context.state.holder = { accountId: name!, keyHash: '' };
    else context.state.session = { _id: sessionId, userId: name! } as WebSession;
    await next();
  });
  app.use(limitAccountCalls(new Holdings(), { rejectionDelayMs: 1 }));
  app.use(async (context) => {
    started += 1;
    await released;
    context.body = {};
  });
  const handle = app.callback();
  const server = createServer((request, response) => void handle(request, response)).listen(0, '127.0.0.1');
  t.teardown(() => {
    server.close();
    server.closeAllConnections();
  });
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}`, started: () => started, release: () => release() };
}

const call = async ({ url }: TestServer, account: string, signal: AbortSignal | null = null) =>
  await fetch(url, { headers: { authorization: account }, signal });

const repeat = <T>(count: number, act: () => T): T[] => Array.from({ length: count }, () => act());

test('the number of calls in flight per account is limited, and the error message contains the limit', async (t) => {
  const served = await serve(t);
  const calls = repeat(maxCallsPerAccount, () => call(served, 'ann'));
  await waitFor('all calls to start', () => served.started() === maxCallsPerAccount);
  for (const rejection of await Promise.all(repeat(3, () => call(served, 'ann')))) {
    t.is(rejection.status, 429);
    t.is(rejection.headers.get('retry-after'), '1');
    const { error } = (await rejection.json()) as { error: { code: string; message: string } };
    t.is(error.code, 'rate_limit_exceeded');
    t.regex(error.message, new RegExp(`at most ${maxCallsPerAccount} requests .* in progress`));
  }
  t.is(served.started(), maxCallsPerAccount);
  const other = call(served, 'bob');
  await waitFor("the other account's call", () => served.started() === maxCallsPerAccount + 1);
  served.release();
  for (const response of await Promise.all([...calls, other])) {
    t.is(response.status, 200);
    await response.text();
  }
  t.is((await call(served, 'ann')).status, 200);
});

test('calls in flight in one session do not block other sessions of the same user', async (t) => {
  const served = await serve(t);
  const stolen = repeat(maxCallsPerAccount, () => call(served, 'ann/stolen'));
  await waitFor('all calls to start', () => served.started() === maxCallsPerAccount);
  t.is((await call(served, 'ann/stolen')).status, 429);
  const sameUser = call(served, 'ann/own');
  await waitFor("the other session's call", () => served.started() === maxCallsPerAccount + 1);
  served.release();
  t.is((await sameUser).status, 200);
  for (const response of await Promise.all(stolen)) await response.text();
});

test('when callers disconnect, their call slots become free, and delayed rejections are dropped', async (t) => {
  const served = await serve(t);
  const caller = new AbortController();
  const cancelled = repeat(maxCallsPerAccount + 3, () => call(served, 'ann', caller.signal));
  await waitFor('all calls to start', () => served.started() === maxCallsPerAccount);
  caller.abort();
  await Promise.allSettled(cancelled);
  // The handlers of the disconnected calls have not returned yet; they hold their call slots until they do.
  served.release();
  await waitFor('a free call slot', async () => {
    const response = await call(served, 'ann');
    await response.text();
    return response.status === 200;
  });
  t.pass();
});
