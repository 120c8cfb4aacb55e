import { AppError } from '../../../shared/contract/errors.ts';
import type { WebUser } from '../../../shared/account-area/web-models.ts';
import { operations } from '../../contract/operations.ts';
import type { SignedInUser } from '../../contract/web-auth.ts';
import { noSuchSessionText } from '../../../shared/contract/web-errors.ts';
import { defineEndpoint } from '../../endpoint.ts';
import { authenticateSession, currentSession, sessionOf } from '../steps/authenticate-session.ts';
import { checkCsrf } from '../steps/check-csrf.ts';
import { unauthenticated } from '../session-errors.ts';
import { clearDeadCookies } from '../steps/clear-dead-cookies.ts';
import { limitCalls } from '../../http/middleware/limit-account-calls.ts';
import { limitChanges } from '../steps/limit-changes.ts';
import { parseBody } from '../../http/middleware/parse-body.ts';
import { presentSession, presentWebUser } from './present-user.ts';
import type { ApiContext } from '../../http/request/context.ts';
import { inDatabaseTurn } from '../../http/request/in-database-turn.ts';
import { readFromDatabase } from '../../http/request/read-turns.ts';
import { clearCookies, readCookie } from '../../http/request/session-cookies.ts';
import type { Services } from '../../services.ts';
import { respondWithoutSession, respondWithSession } from './respond-with-session.ts';
import { readTimeZone } from './fields.ts';
import { findUser } from './find-user.ts';
import { record } from './record.ts';
import { changeAsUser, changeFromPage, readAsUser } from './steps.ts';

/**
 * Refreshes a session. If the refresh token was used before, ends the session: two clients have the token, so one of
 * them must have stolen it.
 */
export const refreshSession = defineEndpoint(operations.refreshSession, changeFromPage, (services) => {
  const { web, config } = services;
  return async (context) => {
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
    await inDatabaseTurn(services, context, async (timedOut) => {
      const found = await web.sessions.findByRefreshToken(token);
      const user = found === null ? null : await web.users.findById(found.userId);
      if (user !== null && user.bannedAt !== null) await web.sessions.revokeAll(user._id);
      // Must be the last step that can fail: if the client does not get the new token, it retries with the old one,
      // which ends the session.
      const refreshed =
        found === null || user === null
          ? null
          : await web.sessions.refresh(token, context.ip, found, timedOut);
      if (user !== null && refreshed?.kind === 'refreshed') {
        respondWithSession(services, context, user, refreshed);
        return;
      }
      clearCookies(context, config);
      if (refreshed?.kind !== 'replayed') throw sessionEnded();
      const { userId, _id: sessionId } = refreshed.session;
      const action = { action: 'refresh-replayed', userId, sessionId } as const;
      await record(services, context, action, () => Promise.resolve());
      throw unauthenticated(
        'This refresh token was already used, so its session was ended. Sign in again, and send only one refresh request at a time.',
        'Этот токен обновления уже использован, поэтому сессия завершена. Войдите снова и отправляйте запросы на обновление по одному.',
      );
    });
  };
});

const sessionEnded = (): AppError =>
  unauthenticated('The session has ended. Sign in again.', 'Сессия завершена. Войдите снова.');

export const getWebUser = defineEndpoint(operations.getWebUser, readAsUser, (services) => async (context) => {
  context.body = await readFromDatabase(services, context, 'one', async () =>
    presentSignedInUser(services, context, await findUser(services, context)),
  );
});

const presentSignedInUser = ({ web }: Services, context: ApiContext, user: WebUser): SignedInUser => ({
  ...presentWebUser(user),
  csrf_token: web.sessions.csrfTokenOf(sessionOf(context)),
});

export const updateWebUser = defineEndpoint(
  operations.updateWebUser,
  [...changeAsUser, limitChanges, parseBody],
  (services) => async (context) => {
    const timezone = readTimeZone(context.state.body.timezone);
    context.body = await inDatabaseTurn(services, context, async () => {
      const user = await findUser(services, context);
      if (user.timezone === timezone) return presentWebUser(user);
      await record(services, context, { action: 'timezone-changed', userId: user._id }, () =>
        services.web.users.setTimezone(user._id, timezone),
      );
      return presentWebUser({ ...user, timezone });
    });
  },
);

/**
 * Ends sessions in the user's database turn and records that in the audit log. Looks the sessions up first, so that
 * repeated calls with no sessions to end record nothing.
 * @returns whether there were any
 */
async function endSessions(
  services: Services,
  context: ApiContext,
  action: 'signed-out' | 'sessions-revoked',
  isSelected: (sessionId: string, ownId: string) => boolean,
): Promise<boolean> {
  const { sessions } = services.web;
  return await inDatabaseTurn(services, context, async () => {
    const session = await currentSession(services, context);
    const { _id: ownId, userId } = session;
    const open = await sessions.listIdsIfOpen(session);
    if (open === null) throw sessionEnded();
    const selected = open.filter((id) => isSelected(id, ownId));
    if (selected.length === 0) return false;
    await record(services, context, { action, userId }, () => sessions.revokeListed(userId, selected));
    return true;
  });
}

export const logOut = defineEndpoint(
  operations.logOut,
  [...changeFromPage, clearDeadCookies, authenticateSession, limitCalls, checkCsrf],
  (services) => async (context) => {
    await endSessions(services, context, 'signed-out', (id, ownId) => id === ownId);
    respondWithoutSession(services, context);
  },
);

export const logOutEverywhere = defineEndpoint(
  operations.logOutEverywhere,
  changeAsUser,
  (services) => async (context) => {
    await endSessions(services, context, 'sessions-revoked', () => true);
    respondWithoutSession(services, context);
  },
);

export const logOutOthers = defineEndpoint(
  operations.logOutOthers,
  changeAsUser,
  (services) => async (context) => {
    await endSessions(services, context, 'sessions-revoked', (id, ownId) => id !== ownId);
    context.status = 204;
  },
);

export const listSessions = defineEndpoint(
  operations.listSessions,
  readAsUser,
  (services) => async (context) => {
    context.body = await readFromDatabase(services, context, 'list', async () => {
      const { userId, _id: currentId } = await currentSession(services, context);
      const sessions = await services.web.sessions.list(userId);
      return sessions.map((session) => presentSession(session, currentId));
    });
  },
);

export const revokeSession = defineEndpoint(
  operations.revokeSession,
  changeAsUser,
  (services) => async (context) => {
    // A UUID may be written in upper case.
    const sessionId = context.state.path.session_id.toLowerCase();
    const isFound = await endSessions(services, context, 'sessions-revoked', (id) => id === sessionId);
    if (!isFound) throw noSuchSession(sessionId);
    if (sessionId === sessionOf(context)._id) respondWithoutSession(services, context);
    else context.status = 204;
  },
);

const noSuchSession = (sessionId: string): AppError =>
  new AppError('not_found', noSuchSessionText(sessionId));
