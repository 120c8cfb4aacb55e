import { isCurrentRefreshToken } from '../../../shared/account-area/session-store.ts';
import type { ApiContext } from '../../http/request/context.ts';
import { readCookie } from '../../http/request/session-cookies.ts';
import type { Services } from '../../services.ts';
import { record } from './record.ts';

/**
 * Ends the session that the browser had before this sign-in. Otherwise it would stay open unnoticed. It is identified
 * by the refresh cookie, because the session cookie expires after a quarter of an hour. If this refresh token is not
 * the latest one of the session, a copy of the token was used elsewhere, so the user is notified by mail, as in
 * `refreshSession`.
 */
export async function endFormerSession(services: Services, context: ApiContext): Promise<void> {
  const { sessions } = services.web;
  const token = readCookie(context, services.config, 'refresh');
  const former = token === null ? null : await sessions.findByRefreshToken(token);
  if (token === null || former === null) return;
  const { userId, _id: sessionId } = former;
  const action = isCurrentRefreshToken(former, token) ? 'signed-out' : 'refresh-replayed';
  await record(services, context, { action, userId, sessionId }, () => sessions.revoke(userId, sessionId));
}

/**
 * Ends all other sessions of a user who signs in, before the new session starts. Requests of those sessions that are
 * still running cannot end the new one (`listIdsIfOpen`), so this locks out an attacker who keeps ending the user's
 * sessions.
 * @param sessionId the session that is about to start
 */
export async function endOtherSessions(
  services: Services,
  context: ApiContext,
  { userId, sessionId }: { readonly userId: string; readonly sessionId: string },
): Promise<void> {
  const { sessions } = services.web;
  if ((await sessions.list(userId)).length === 0) return;
  const action = { action: 'sessions-revoked', userId, sessionId } as const;
  await record(services, context, action, () => sessions.revokeAll(userId));
}
