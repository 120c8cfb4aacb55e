import { AppError } from '../../../shared/contract/errors.ts';
import type { WebUserChange } from '../../../shared/contract/web-auth.ts';
import type { SessionPath } from '../../../shared/contract/web-sessions.ts';
import { noSuchSessionText } from '../../../shared/contract/web-errors.ts';
import { currentSession, sessionOf, unauthenticated } from '../../middleware/authenticate-session.ts';
import type { ApiContext } from '../../middleware/request-context.ts';
import { clearCookies, readCookie } from '../../middleware/session-cookies.ts';
import { presentSession, presentWebUser } from '../../present/web.ts';
import type { Services } from '../../services.ts';
import { inDatabaseTurn } from '../../middleware/in-database-turn.ts';
import { record } from './record.ts';
import { answerWithoutSession, answerWithSession } from './answer-with-session.ts';
import { readTimeZone } from './fields.ts';
import { findUser } from './find-user.ts';

/** Goes on with a session. A token that was used before ends it: one of the two who have it has stolen it. */
export function refreshSession(services: Services) {
  const { web, config } = services;
  return async (context: ApiContext): Promise<void> => {
    const token = readCookie(context, config, 'refresh');
    if (token === null)
      throw unauthenticated(
        'The request has no refresh cookie. Sign in.',
        'В запросе нет cookie для обновления сессии. Войдите.',
      );
    if (!web.sessions.isIssued('refresh', token)) {
      clearCookies(context, config);
      throw sessionEnded();
    }
    await inDatabaseTurn(services, context, async (late) => {
      const found = await web.sessions.findByRefreshToken(token);
      const user = found === null ? null : await web.users.findById(found.userId);
      if (user !== null && user.bannedAt !== null) await web.sessions.revokeAll(user._id);
      // The last step that can fail: a token that was replaced, and whose answer was lost, ends the session.
      const refreshed =
        found === null || user === null ? null : await web.sessions.refresh(token, context.ip, found, late);
      if (user !== null && refreshed?.kind === 'refreshed') {
        answerWithSession(services, context, user, refreshed);
        return;
      }
      clearCookies(context, config);
      if (refreshed?.kind !== 'replayed') throw sessionEnded();
      const { userId, _id: sessionId } = refreshed.session;
      const action = { action: 'refresh-replayed', userId, sessionId } as const;
      await record(services, context, action, () => Promise.resolve());
      throw unauthenticated(
        'This refresh token was used before, so its session has been ended. Sign in again; send one refresh at a time.',
        'Этот токен обновления уже использован, поэтому его сессия завершена. Войдите снова; отправляйте обновления по одному.',
      );
    });
  };
}

const sessionEnded = (): AppError =>
  unauthenticated('The session has ended. Sign in again.', 'Сессия завершена. Войдите снова.');

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
      if (user.timezone === timezone) return presentWebUser(user);
      await record(services, context, { action: 'timezone-changed', userId: user._id }, () =>
        services.web.users.setTimezone(user._id, timezone),
      );
      return presentWebUser({ ...user, timezone });
    });
  };
}

/**
 * Ends sessions, in the user's turn at the database, and writes it down. They are looked for first: where there is nothing
 * to end, nothing is written down, however often it is asked for.
 * @returns whether there were any
 */
async function endSessions(
  services: Services,
  context: ApiContext,
  action: 'signed-out' | 'sessions-revoked',
  isMeant: (sessionId: string, ownId: string) => boolean,
): Promise<boolean> {
  const { sessions } = services.web;
  return await inDatabaseTurn(services, context, async () => {
    const session = await currentSession(services, context);
    const { _id: ownId, userId } = session;
    const open = await sessions.listIdsWhileOpen(session);
    if (open === null) throw sessionEnded();
    const meant = open.filter((id) => isMeant(id, ownId));
    if (meant.length === 0) return false;
    await record(services, context, { action, userId }, () => sessions.revokeThese(userId, meant));
    return true;
  });
}

export function logOut(services: Services) {
  return async (context: ApiContext): Promise<void> => {
    await endSessions(services, context, 'signed-out', (id, ownId) => id === ownId);
    answerWithoutSession(services, context);
  };
}

export function logOutEverywhere(services: Services) {
  return async (context: ApiContext): Promise<void> => {
    await endSessions(services, context, 'sessions-revoked', () => true);
    answerWithoutSession(services, context);
  };
}

export function logOutOthers(services: Services) {
  return async (context: ApiContext): Promise<void> => {
    await endSessions(services, context, 'sessions-revoked', (id, ownId) => id !== ownId);
    context.status = 204;
  };
}

export function listSessions(services: Services) {
  return async (context: ApiContext): Promise<void> => {
    context.body = await inDatabaseTurn(services, context, async () => {
      const { userId, _id: currentId } = await currentSession(services, context);
      const sessions = await services.web.sessions.list(userId);
      return sessions.map((session) => presentSession(session, currentId));
    });
  };
}

export function revokeSession(services: Services) {
  return async (context: ApiContext): Promise<void> => {
    // A UUID may be written in capitals.
    const sessionId = (context.state.path as SessionPath).session_id.toLowerCase();
    const isFound = await endSessions(services, context, 'sessions-revoked', (id) => id === sessionId);
    if (!isFound) throw noSuchSession(sessionId);
    if (sessionId === sessionOf(context)._id) answerWithoutSession(services, context);
    else context.status = 204;
  };
}

const noSuchSession = (sessionId: string): AppError =>
  new AppError('not_found', noSuchSessionText(sessionId));
