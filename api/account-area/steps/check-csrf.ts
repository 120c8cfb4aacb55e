import { AppError } from '../../../shared/contract/errors.ts';
import type { WebSession } from '../../../shared/account-area/web-models.ts';
import type { ApiContext, ApiMiddleware } from '../../http/request/context.ts';
import type { Services } from '../../services.ts';
import { sessionOf } from './authenticate-session.ts';

/** Requires a token that only pages of this service can read. For calls that change something. */
export const checkCsrf =
  (services: Services): ApiMiddleware =>
  async (context, next) => {
    // A page that sends only the refresh cookie may no longer have a CSRF token. `SameSite` and `Origin` protect the
    // call, as in a refresh.
    if (context.state.sessionCookie !== 'refresh') requireCsrfToken(services, context, sessionOf(context));
    await next();
  };

/** @throws AppError `csrf_failed` */
export function requireCsrfToken(
  { web: { sessions } }: Pick<Services, 'web'>,
  context: ApiContext,
  session: WebSession,
): void {
  const token = context.get('x-csrf-token');
  if (sessions.isCsrfToken(session, token)) return;
  throw token === ''
    ? new AppError('csrf_failed', {
        message:
          'The X-CSRF-Token header is missing. Send the csrf_token of this session, which GET /v1/web/auth/me returns.',
        messageRu:
          'Заголовок X-CSRF-Token отсутствует. Передайте csrf_token этой сессии: его возвращает GET /v1/web/auth/me.',
      })
    : new AppError('csrf_failed', {
        message:
          'The X-CSRF-Token header is incorrect. Send the csrf_token of this session, which GET /v1/web/auth/me returns; each refresh changes it.',
        messageRu:
          'Заголовок X-CSRF-Token неверен. Передайте csrf_token этой сессии: его возвращает GET /v1/web/auth/me; каждое обновление сессии меняет его.',
      });
}
