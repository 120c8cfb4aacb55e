import type { AuthResult } from '../../contract/web-auth.ts';
import type { SessionWithTokens } from '../../../shared/account-area/session-store.ts';
import type { WebUser } from '../../../shared/account-area/web-models.ts';
import { presentWebUser } from './present-user.ts';
import type { ApiContext } from '../../http/request/context.ts';
import { clearCookies, setCookie } from '../../http/request/session-cookies.ts';
import type { Services } from '../../services.ts';

/** Sends a new or refreshed session's tokens to the browser. No other response contains them. */
export function respondWithSession(
  { config }: Services,
  context: ApiContext,
  user: WebUser,
  { session, accessToken, refreshToken, csrfToken }: SessionWithTokens,
): void {
  context.state.session = session;
  setCookie(context, config, 'session', { token: accessToken, expiresAt: session.accessExpiresAt });
  setCookie(context, config, 'refresh', { token: refreshToken, expiresAt: session.expiresAt });
  context.body = { user: presentWebUser(user), csrf_token: csrfToken } satisfies AuthResult;
}

export function respondWithoutSession({ config }: Services, context: ApiContext): void {
  clearCookies(context, config);
  context.status = 204;
}
