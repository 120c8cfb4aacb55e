import { AppError } from '../../shared/contract/errors.ts';
import { runInBackground } from '../../shared/runtime/run-in-background.ts';
import type { WebSession } from '../../shared/web/web-models.ts';
import type { Services } from '../services.ts';
import { inDatabaseTurn } from './in-database-turn.ts';
import type { ApiContext, ApiMiddleware } from './request-context.ts';
import { readCookie } from './session-cookies.ts';

/** What a session opens, and what opens one, is for no cache. */
export const forbidCaching: ApiMiddleware = async (context, next) => {
  context.set('cache-control', 'no-store');
  await next();
};

/**
 * Finds the session that a browser's cookie opens. It is looked up with every call, so that one that was revoked opens
 * nothing any more, at once and everywhere.
 * @throws AppError `unauthenticated`
 */
export function authenticateSession(services: Services): ApiMiddleware {
  const { web, config, log } = services;
  return async (context, next) => {
    const token = readCookie(context, config, 'session');
    if (token === null) {
      // Browsers drop the cookie of a session after a quarter of an hour, and keep the other one.
      throw unauthenticated(
        readCookie(context, config, 'refresh') === null
          ? 'The request has no session cookie. Sign in.'
          : 'The session cookie has expired. Refresh the session with POST /v1/web/auth/refresh, or sign in.',
      );
    }
    // What was never issued here does not wait for a turn at the database.
    if (!web.sessions.isIssued('access', token)) throw sessionEnded();
    const session = await inDatabaseTurn(services, context, () => web.sessions.find(token));
    if (session === null) throw sessionEnded();
    context.state.session = session;
    context.state.sessionFoundAtMs = performance.now();
    runInBackground(web.sessions.touch(session, context.ip), 'noting the use of a session', log);
    await next();
  };
}

const sessionEnded = (): AppError =>
  unauthenticated('The session has ended, or its cookie has expired. Refresh it, or sign in again.');

/** What was known of a session for so long is looked up again before anything is done by it. */
const knownForMs = 500;

/**
 * The session, as it is now: a request may have sent its body slowly, or waited for a turn at the database, and its
 * session have been ended meanwhile.
 * @throws AppError `unauthenticated`
 */
export async function currentSession({ web, config }: Services, context: ApiContext): Promise<WebSession> {
  const { sessionFoundAtMs = 0 } = context.state;
  if (performance.now() - sessionFoundAtMs < knownForMs) return sessionOf(context);
  const session = await web.sessions.find(readCookie(context, config, 'session') ?? '');
  if (session === null) throw sessionEnded();
  context.state.session = session;
  context.state.sessionFoundAtMs = performance.now();
  return session;
}

export const unauthenticated = (message: string): AppError => new AppError('unauthenticated', { message });

export function sessionOf(context: ApiContext): WebSession {
  const { session } = context.state;
  if (session === undefined) throw unauthenticated('The request has no session. Sign in.');
  return session;
}
