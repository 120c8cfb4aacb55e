import { AppError } from '../../shared/contract/errors.ts';
import { checkCsrf as isCsrfToken } from '../../shared/web/session-store.ts';
import { sessionOf } from './authenticate-session.ts';
import type { ApiMiddleware } from './request-context.ts';

/** Of calls that change something, demands what only pages of this service have been told. */
export const checkCsrf: ApiMiddleware = async (context, next) => {
  const token = context.get('x-csrf-token');
  if (!isCsrfToken(sessionOf(context), token)) {
    throw new AppError('csrf_failed', {
      message:
        token === ''
          ? 'The X-CSRF-Token header is missing. Send the csrf_token of the last sign-in or refresh of this session.'
          : 'The X-CSRF-Token header is not the csrf_token of the last sign-in or refresh of this session. Send that one; POST /v1/web/auth/refresh returns a new one.',
    });
  }
  await next();
};
