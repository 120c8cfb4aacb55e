import { AppError } from '../../shared/contract/errors.ts';
import { noSuchLinkText } from '../../shared/contract/web-errors.ts';

export const unauthenticated = (message: string, messageRu: string): AppError =>
  new AppError('unauthenticated', { message, messageRu });

export const sessionEnded = (): AppError =>
  unauthenticated(
    'The session has ended, or its cookie has expired. Refresh the session, or sign in again.',
    'Сессия завершена, или срок действия её cookie истёк. Обновите сессию или войдите снова.',
  );

/** @param hasRefreshCookie browsers drop the session cookie after a quarter of an hour and keep the refresh cookie */
export const noSessionCookie = (hasRefreshCookie: boolean): AppError =>
  hasRefreshCookie
    ? unauthenticated(
        'The session cookie has expired. Refresh the session with POST /v1/web/auth/refresh, or sign in.',
        'Срок действия cookie сессии истёк. Обновите сессию через POST /v1/web/auth/refresh или войдите снова.',
      )
    : unauthenticated('The request has no session cookie. Sign in.', 'В запросе нет cookie сессии. Войдите.');

export const noSuchLink = (linkId: number): AppError => new AppError('not_found', noSuchLinkText(linkId));

export const accountGone = (): AppError =>
  new AppError('not_found', {
    message: 'This account no longer exists.',
    messageRu: 'Этого аккаунта больше нет.',
  });
