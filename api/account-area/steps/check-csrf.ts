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
          'The X-CSRF-Token header is missing. Send the csrf_token of the last sign-in or refresh of this session.',
        messageRu:
          'Нет заголовка X-CSRF-Token. Передайте в нём csrf_token последнего входа или обновления этой сессии.',
      })
    : new AppError('csrf_failed', {
        message:
          'The X-CSRF-Token header is not the csrf_token of the last sign-in or refresh of this session. Send that one; POST /v1/web/auth/refresh returns a new one.',
        messageRu:
          'В заголовке X-CSRF-Token не тот csrf_token, который вернул последний вход или обновление этой сессии. Передайте его; POST /v1/web/auth/refresh вернёт новый.',
      });
}
