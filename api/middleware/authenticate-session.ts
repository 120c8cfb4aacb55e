import { AppError } from '../../shared/contract/errors.ts';
import { runInBackground } from '../../shared/runtime/run-in-background.ts';
import type { WebSession } from '../../shared/web/web-models.ts';
import type { Services } from '../services.ts';
import { inDatabaseTurn } from './in-database-turn.ts';
import type { ApiContext, ApiMiddleware } from './request-context.ts';
import { readCookie, type SessionCookie } from './session-cookies.ts';

/** What a session opens, and what opens one, is for no cache. */
export const forbidCaching: ApiMiddleware = async (context, next) => {
  context.set('cache-control', 'no-store');
  await next();
};

/**
 * Finds the session that a browser's cookie opens. It is looked up with every call, so that one that was revoked opens
 * nothing any more, at once and everywhere.
 * @param cookies those that are accepted; the first that opens a session counts
 * @throws AppError `unauthenticated`
 */
export function authenticateSession(
  services: Services,
  cookies: readonly SessionCookie[] = ['session'],
): ApiMiddleware {
  const { web, log } = services;
  return async (context, next) => {
    const session = await openSession(services, context, cookies);
    runInBackground(web.sessions.touch(session, context.ip), 'noting the use of a session', log);
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
    // What was never issued here does not wait for a turn at the database.
    if (token === null || !web.sessions.isIssued(tokenKinds[cookie], token)) continue;
    const session = await inDatabaseTurn(services, context, () => findByToken(web, cookie, token));
    if (session !== null) return keepSession(context, cookie, session);
  }
  if (readCookie(context, config, 'session') !== null) throw sessionEnded();
  // Browsers drop the cookie of a session after a quarter of an hour, and keep the other one.
  throw readCookie(context, config, 'refresh') === null
    ? unauthenticated('The request has no session cookie. Sign in.', 'В запросе нет cookie сессии. Войдите.')
    : unauthenticated(
        'The session cookie has expired. Refresh the session with POST /v1/web/auth/refresh, or sign in.',
        'Срок действия cookie сессии истёк. Обновите сессию через POST /v1/web/auth/refresh или войдите снова.',
      );
}

const tokenKinds = { session: 'access', refresh: 'refresh' } as const;

const findByToken = async (
  { sessions }: Services['web'],
  cookie: SessionCookie,
  token: string,
): Promise<WebSession | null> =>
  cookie === 'session' ? await sessions.find(token) : await sessions.findByRefreshToken(token);

function keepSession(context: ApiContext, cookie: SessionCookie, session: WebSession): WebSession {
  context.state.session = session;
  context.state.sessionCookie = cookie;
  context.state.sessionFoundAtMs = performance.now();
  return session;
}

const sessionEnded = (): AppError =>
  unauthenticated(
    'The session has ended, or its cookie has expired. Refresh it, or sign in again.',
    'Сессия завершена, или срок действия её cookie истёк. Обновите сессию или войдите снова.',
  );

/** What was known of a session for so long is looked up again before anything is done by it. */
const knownForMs = 500;

/**
 * The session, as it is now: a request may have sent its body slowly, or waited for a turn at the database, and its
 * session have been ended meanwhile.
 * @throws AppError `unauthenticated`
 */
export async function currentSession({ web, config }: Services, context: ApiContext): Promise<WebSession> {
  const { sessionFoundAtMs = 0, sessionCookie: cookie = 'session' } = context.state;
  if (performance.now() - sessionFoundAtMs < knownForMs) return sessionOf(context);
  const session = await findByToken(web, cookie, readCookie(context, config, cookie) ?? '');
  if (session === null) throw sessionEnded();
  return keepSession(context, cookie, session);
}

export const unauthenticated = (message: string, messageRu: string): AppError =>
  new AppError('unauthenticated', { message, messageRu });

export function sessionOf(context: ApiContext): WebSession {
  const { session } = context.state;
  if (session === undefined)
    throw unauthenticated('The request has no session. Sign in.', 'У запроса нет сессии. Войдите.');
  return session;
}
