import type { Operation } from '../../../shared/contract/operation.ts';
import { runInBackground } from '../../../shared/platform/runtime/run-in-background.ts';
import type { WebSession } from '../../../shared/account-area/web-models.ts';
import type { ApiContext, ApiMiddleware } from '../../http/request/context.ts';
import { inDatabaseTurn } from '../../http/request/in-database-turn.ts';
import { readCookie, type SessionCookie } from '../../http/request/session-cookies.ts';
import type { Services } from '../../services.ts';
import { noSessionCookie, sessionEnded, unauthenticated } from '../session-errors.ts';

/** Forbids caching of responses that depend on a session or create one. */
export const forbidCaching = (): ApiMiddleware => async (context, next) => {
  context.set('cache-control', 'no-store');
  await next();
};

/**
 * Finds the session of the browser's cookie. Looks it up on every call, so that revoking a session takes effect
 * immediately and in all processes.
 * @throws AppError `unauthenticated`
 */
export function authenticateSession(
  services: Services,
  { acceptsRefreshCookie }: Pick<Operation, 'acceptsRefreshCookie'>,
): ApiMiddleware {
  const { web, log } = services;
  // The first cookie with a session is used.
  const cookies: readonly SessionCookie[] =
    acceptsRefreshCookie === true ? ['session', 'refresh'] : ['session'];
  return async (context, next) => {
    const session = await openSession(services, context, cookies);
    runInBackground(web.sessions.touch(session, context.ip), 'recording the use of a session', log);
    await next();
  };
}

async function openSession(
  services: Services,
  context: ApiContext,
  cookies: readonly SessionCookie[],
): Promise<WebSession> {
  const { web, config } = services;
  for (const cookie of cookies) {
    const token = readCookie(context, config, cookie);
    // Tokens that were not issued here are skipped without waiting for a database turn.
    if (token === null || !web.sessions.isIssued(tokenKinds[cookie], token)) continue;
    const session = await inDatabaseTurn(services, context, () => findByToken(web, cookie, token));
    if (session !== null) return setSession(context, cookie, session);
  }
  if (readCookie(context, config, 'session') !== null) throw sessionEnded();
  throw noSessionCookie(readCookie(context, config, 'refresh') !== null);
}

const tokenKinds = { session: 'access', refresh: 'refresh' } as const;

const findByToken = async (
  { sessions }: Services['web'],
  cookie: SessionCookie,
  token: string,
): Promise<WebSession | null> =>
  cookie === 'session' ? await sessions.find(token) : await sessions.findByRefreshToken(token);

function setSession(context: ApiContext, cookie: SessionCookie, session: WebSession): WebSession {
  context.state.session = session;
  context.state.sessionCookie = cookie;
  context.state.sessionFoundAtMs = performance.now();
  return session;
}

/** If a session was looked up longer ago than this, it is looked up again before an action. */
const maxSessionAgeMs = 500;

/**
 * Returns the current state of the session, which may have ended while the request's body was arriving or the request
 * was waiting for a database turn.
 * @throws AppError `unauthenticated`
 */
export async function currentSession({ web, config }: Services, context: ApiContext): Promise<WebSession> {
  const { sessionFoundAtMs = 0, sessionCookie: cookie = 'session' } = context.state;
  if (performance.now() - sessionFoundAtMs < maxSessionAgeMs) return sessionOf(context);
  const session = await findByToken(web, cookie, readCookie(context, config, cookie) ?? '');
  if (session === null) throw sessionEnded();
  return setSession(context, cookie, session);
}

export function sessionOf(context: ApiContext): WebSession {
  const { session } = context.state;
  if (session === undefined)
    throw unauthenticated('The request has no session. Sign in.', 'В запросе нет сессии. Войдите.');
  return session;
}
