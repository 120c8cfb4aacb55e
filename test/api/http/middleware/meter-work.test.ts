import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import test, { type ExecutionContext } from 'ava';
import Koa from 'koa';
import { FundedAccounts } from '../../../../api/admission/funded-accounts.ts';
import { UnpaidTime } from '../../../../api/http/callers/unpaid-time.ts';
import { meterRequests, meterWork } from '../../../../api/http/middleware/meter-work.ts';
import { renderError } from '../../../../api/http/middleware/render-error.ts';
import { requestContext } from '../../../../api/http/middleware/request-context.ts';
import type { RequestState } from '../../../../api/http/request/context.ts';
import type { MeteredServices } from '../../../../api/http/request/work-meter.ts';
import type { HotAccount } from '../../../../shared/accounts/hot-account-store.ts';
import type { AdminTokenDocument } from '../../../../shared/admin/admin-token-store.ts';
import { createLogger } from '../../../../shared/platform/runtime/logger.ts';

const rich = `mg-${'r'.repeat(43)}`;
const operator = `mga-${'o'.repeat(43)}`;
const poor = `mg-${'p'.repeat(43)}`;
/** A session's token; with it, the account of `rich` is called. */
const issuedToken = 'issued';
const poorAccount = { freeRequests: 0, banned: false };
/** How long the middleware that stands for an unknown hole blocks the process, in milliseconds. */
const blockMs = 40;

function block(ms: number): void {
  const untilMs = performance.now() + ms;
  while (performance.now() < untilMs);
}

interface TestServer {
  readonly url: string;
  /** Time for which calls have blocked the process, in milliseconds. */
  readonly blockedMs: () => number;
  readonly funded: FundedAccounts;
}

/**
 * An api with a hole: `/early` blocks the process as soon as it is called, `/late` only after the caller has been
 * authenticated. `/plain` does not.
 */
async function serve(t: ExecutionContext): Promise<TestServer> {
  let blockedMs = 0;
  const hole = (): void => {
    block(blockMs);
    blockedMs += blockMs;
  };
  const log = createLogger('test', 'silent');
  const find = (key: string) => Promise.resolve(key === '' ? null : { accountId: key, keyHash: key });
  const funded = new FundedAccounts({
    get: async (accountId) =>
      ({ ...poorAccount, keyHash: accountId, balanceNano: accountId === rich ? 1n : 0n }) as HotAccount,
  });
  const services: MeteredServices = {
    apiKeys: { find },
    funded,
    unpaidTime: new UnpaidTime({ log }),
    config: { publicUrl: null },
    web: { sessions: { isIssued: (_, token) => token === issuedToken } },
    sessionAccounts: {
      find: async ({ linkId }) => ({ session: null, accountId: linkId === 1 ? rich : null }),
    },
    admin: { tokens: { find: async (secret) => (secret === operator ? ({} as AdminTokenDocument) : null) } },
  };
  const app = new Koa<RequestState>();
  app.use(requestContext(log)).use(renderError(log)).use(meterRequests(services));
  app.use(
    meterWork(async (context, next) => {
      if (context.path === '/early') hole();
      const holder = await find(context.get('authorization').replace('Bearer ', ''));
      if (holder !== null) context.state.holder = holder;
      await next();
    }),
  );
  app.use(
    meterWork(async (context) => {
      if (context.path === '/late') hole();
      context.body = {};
    }),
  );
  const handle = app.callback();
  const server = createServer((request, response) => void handle(request, response)).listen(0, '127.0.0.1');
  t.teardown(() => {
    server.close();
    server.closeAllConnections();
  });
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}`, blockedMs: () => blockedMs, funded };
}

const headersOf = (key: string | null): Record<string, string> => {
  if (key === issuedToken) return { cookie: `mg_session=${key}`, 'x-api-account': '1' };
  return key === null ? {} : { authorization: `Bearer ${key}` };
};

/** Eight clients that send one call after another for a while. */
async function flood(url: string, key: string | null, forMs: number): Promise<void> {
  const signal = AbortSignal.timeout(forMs);
  const client = async (): Promise<void> => {
    while (!signal.aborted) {
      const response = await fetch(url, { headers: headersOf(key), signal });
      await response.text();
    }
  };
  await Promise.allSettled(Array.from({ length: 8 }, client));
}

for (const [name, path, key] of [
  ['without a key', '/early', null],
  ['without money', '/early', poor],
  ['without money, after they are authenticated', '/late', poor],
] as const) {
  test.serial(`callers ${name} get a quarter of the process's time, whatever their calls cost`, async (t) => {
    const { url, blockedMs } = await serve(t);
    const startedMs = performance.now();
    await flood(`${url}${path}`, key, 2_000);
    const elapsedMs = performance.now() - startedMs;
    // A quarter of a second at once, then a quarter of the time, and one call more, which cannot be interrupted.
    const allowedMs = 250 + elapsedMs / 4 + blockMs;
    t.true(blockedMs() <= allowedMs, `${blockedMs()} of ${elapsedMs} ms, ${allowedMs} allowed`);
    t.true(blockedMs() >= 250);
  });
}

for (const [name, key] of [
  ['callers with money', rich],
  ['operators with a named token', operator],
  ['sessions of users whose account has money', issuedToken],
] as const)
  test.serial(`${name} do not wait, also from the network of a flood`, async (t) => {
    const { url } = await serve(t);
    const flooding = flood(`${url}/early`, null, 1_500);
    const untilMs = performance.now() + 1_500;
    let served = 0;
    while (performance.now() < untilMs) {
      const response = await fetch(`${url}/plain`, { headers: headersOf(key) });
      t.is(response.status, 200);
      await response.text();
      served += 1;
    }
    await flooding;
    // The process was blocked for half a second at most. One call takes about a millisecond.
    t.true(served > 50, `${served}`);
  });

test.serial("the work of callers with money is not counted against their network's share", async (t) => {
  const { url, blockedMs, funded } = await serve(t);
  // What admission does.
  funded.note({ accountId: rich, keyHash: rich });
  for (let i = 0; i < 40; i++) await (await fetch(`${url}/late`, { headers: headersOf(rich) })).text();
  t.is(blockedMs(), 40 * blockMs);
  const startedMs = performance.now();
  await (await fetch(`${url}/plain`)).text();
  // Otherwise this would wait for seconds.
  t.true(performance.now() - startedMs < 2_000);
});
