import { isLastRefreshToken } from '../../../shared/web/session-store.ts';
import type { ApiContext } from '../../middleware/request-context.ts';
import { readCookie } from '../../middleware/session-cookies.ts';
import type { Services } from '../../services.ts';
import { record } from './record.ts';

/**
 * Ends the session that the browser had before this sign-in. It would stay open otherwise, and nobody could tell which one it
 * was. The refresh cookie identifies it, because the session cookie expires after a quarter of an hour. A refresh token that
 * was replaced is treated as in a refresh: somebody else has used a copy of it, so the user is told by mail.
 */
export async function endFormerSession(services: Services, context: ApiContext): Promise<void> {
  const { sessions } = services.web;
  const token = readCookie(context, services.config, 'refresh');
  const former = token === null ? null : await sessions.findByRefreshToken(token);
  if (token === null || former === null) return;
  const { userId, _id: sessionId } = former;
  const action = isLastRefreshToken(former, token) ? 'signed-out' : 'refresh-replayed';
  await record(services, context, { action, userId, sessionId }, () => sessions.revoke(userId, sessionId));
}

/**
 * Ends all sessions of a user who signs in, before the new one is started. A request from one of them that is still under
 * way cannot end the new session (`listIdsWhileOpen`), so this shuts out somebody who ends sessions in a loop.
 * @param sessionId of the session that is about to be started
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
