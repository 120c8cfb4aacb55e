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
    if (token === null) throw unauthenticated('The request has no session cookie. Sign in.');
    // One that is made up waits for no turn, and takes none from those who have a session.
    const session = web.sessions.isIssued('access', token)
      ? await inDatabaseTurn(services, context, () => web.sessions.find(token))
      : null;
    if (session === null) {
      throw unauthenticated(
        'The session has ended, or its cookie has expired. Refresh it, or sign in again.',
      );
    }
    context.state.session = session;
    runInBackground(web.sessions.touch(session, context.ip), 'noting the use of a session', log);
    await next();
  };
}

export const unauthenticated = (message: string): AppError => new AppError('unauthenticated', { message });

export function sessionOf(context: ApiContext): WebSession {
  const { session } = context.state;
  if (session === undefined) throw unauthenticated('The request has no session. Sign in.');
  return session;
}
