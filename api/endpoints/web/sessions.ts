import { AppError } from '../../../shared/contract/errors.ts';
import type { SessionPath, WebUserChange } from '../../../shared/contract/web-auth.ts';
import { sessionOf, unauthenticated } from '../../middleware/authenticate-session.ts';
import type { ApiContext } from '../../middleware/request-context.ts';
import { clearCookies, readCookie } from '../../middleware/session-cookies.ts';
import { presentSession, presentWebUser } from '../../present/web.ts';
import type { Services } from '../../services.ts';
import { inDatabaseTurn } from '../../middleware/in-database-turn.ts';
import { noteEvent, sendNotice } from './note-event.ts';
import { answerWithoutSession, answerWithSession } from './answer-with-session.ts';
import { readTimeZone } from './fields.ts';
import { findUser } from './find-user.ts';

/** Goes on with a session. A token that was used before ends it: one of the two who have it has stolen it. */
export function refreshSession(services: Services) {
  const { web, config } = services;
  return async (context: ApiContext): Promise<void> => {
    const token = readCookie(context, config, 'refresh');
    if (token === null) throw unauthenticated('The request has no refresh cookie. Sign in.');
    if (!web.sessions.isIssued('refresh', token)) {
      clearCookies(context, config);
      throw sessionEnded();
    }
    await inDatabaseTurn(services, context, async () => {
      const refreshed = await web.sessions.refresh(token, context.ip);
      if (refreshed.kind === 'refreshed') {
        const user = await web.users.findById(refreshed.session.userId);
        if (user === null || user.bannedAt !== null) {
          await web.sessions.revokeAll(refreshed.session.userId);
        } else {
          answerWithSession(services, context, user, refreshed);
          return;
        }
      }
      clearCookies(context, config);
      if (refreshed.kind === 'replayed') {
        await sendNotice(services, context, {
          action: 'refresh-replayed',
          userId: refreshed.session.userId,
          sessionId: refreshed.session._id,
        });
        throw unauthenticated(
          'This refresh token was used before, so its session has been ended. Sign in again; send one refresh at a time.',
        );
      }
      throw sessionEnded();
    });
  };
}

const sessionEnded = (): AppError => unauthenticated('The session has ended. Sign in again.');

export function getWebUser(services: Services) {
  return async (context: ApiContext): Promise<void> => {
    context.body = await inDatabaseTurn(services, context, async () =>
      presentWebUser(await findUser(services, context)),
    );
  };
}

export function updateWebUser(services: Services) {
  return async (context: ApiContext): Promise<void> => {
    const timezone = readTimeZone((context.state.body as WebUserChange).timezone);
    context.body = await inDatabaseTurn(services, context, async () => {
      const user = await findUser(services, context);
      await services.web.users.setTimezone(user._id, timezone);
      return presentWebUser({ ...user, timezone });
    });
  };
}

export function logOut(services: Services) {
  return async (context: ApiContext): Promise<void> => {
    const { userId, _id: sessionId } = sessionOf(context);
    await inDatabaseTurn(services, context, async () => {
      await services.web.sessions.revoke(userId, sessionId);
      await noteEvent(services, context, { action: 'signed-out', userId });
    });
    answerWithoutSession(services, context);
  };
}

export function logOutEverywhere(services: Services) {
  return async (context: ApiContext): Promise<void> => {
    const { userId } = sessionOf(context);
    await inDatabaseTurn(services, context, async () => {
      await services.web.sessions.revokeAll(userId);
      await noteEvent(services, context, { action: 'sessions-revoked', userId });
    });
    answerWithoutSession(services, context);
  };
}

export function logOutOthers(services: Services) {
  return async (context: ApiContext): Promise<void> => {
    const { userId, _id: sessionId } = sessionOf(context);
    await inDatabaseTurn(services, context, async () => {
      await services.web.sessions.revokeOthers(userId, sessionId);
      await noteEvent(services, context, { action: 'sessions-revoked', userId });
    });
    context.status = 204;
  };
}

export function listSessions(services: Services) {
  return async (context: ApiContext): Promise<void> => {
    const { userId, _id: currentId } = sessionOf(context);
    const sessions = await inDatabaseTurn(services, context, () => services.web.sessions.list(userId));
    context.body = sessions.map((session) => presentSession(session, currentId));
  };
}

export function revokeSession(services: Services) {
  return async (context: ApiContext): Promise<void> => {
    const { userId, _id: currentId } = sessionOf(context);
    const { session_id: sessionId } = context.state.path as SessionPath;
    await inDatabaseTurn(services, context, async () => {
      if (!(await services.web.sessions.revoke(userId, sessionId))) {
        throw new AppError('not_found', {
          message: `There is no session ${sessionId}. GET /v1/web/auth/sessions lists those there are.`,
        });
      }
      await noteEvent(services, context, { action: 'sessions-revoked', userId });
    });
    if (sessionId === currentId) answerWithoutSession(services, context);
    else context.status = 204;
  };
}
