import { AppError } from '../../../shared/contract/errors.ts';
import { checkCsrf as isCsrfToken } from '../../../shared/account-area/session-store.ts';
import type { WebSession } from '../../../shared/account-area/web-models.ts';
import type { ApiMiddleware } from '../../http/request/context.ts';
import { sessionOf } from './authenticate-session.ts';

/** Requires a token that only pages of this service can read. For calls that change something. */
export const checkCsrf = (): ApiMiddleware => async (context, next) => {
  // A page that sends only the refresh cookie no longer has a CSRF token. `SameSite` and `Origin` protect the call, as
  // in a refresh.
  if (context.state.sessionCookie !== 'refresh') checkToken(sessionOf(context), context.get('x-csrf-token'));
  await next();
};

function checkToken(session: WebSession, token: string): void {
  if (isCsrfToken(session, token)) return;
  throw token === ''
    ? new AppError('csrf_failed', {
        message:
          'The X-CSRF-Token header is missing. Send the csrf_token from the last sign-in or refresh of this session.',
        messageRu:
          'Заголовок X-CSRF-Token отсутствует. Передайте csrf_token, полученный при последнем входе или обновлении сессии.',
      })
    : new AppError('csrf_failed', {
        message:
          'The X-CSRF-Token header is incorrect. Send the csrf_token from the last sign-in or refresh of this session; POST /v1/web/auth/refresh returns a new one.',
        messageRu:
          'Заголовок X-CSRF-Token неверен. Передайте csrf_token, полученный при последнем входе или обновлении сессии; POST /v1/web/auth/refresh вернёт новый.',
      });
}
