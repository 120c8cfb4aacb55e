// decision 0099
import { toAppError } from '../../../shared/contract/errors.ts';
import { hasUnsafeMethod, type Operation } from '../../../shared/contract/operation.ts';
import { runInBackground } from '../../../shared/platform/runtime/run-in-background.ts';
import { findKeyHolder } from '../../http/request/find-key-holder.ts';
import type { SessionHolder } from '../../http/request/holder.ts';
import {
  findAccess,
  malformedAccount,
  readLinkId,
  readSessionToken,
  toSessionHolder,
  usesSession,
} from '../../http/request/session-holder.ts';
import type { ApiContext, ApiMiddleware } from '../../http/request/context.ts';
import type { Services } from '../../services.ts';
import { accountGone, noSuchLink, sessionEnded } from '../session-errors.ts';
import { requireCsrfToken } from './check-csrf.ts';
import { requireOwnOrigin } from './check-origin.ts';

/**
 * Finds the account that the request acts for: that of its API key or, without an Authorization header, the account that
 * `X-Api-Account` names, if the session's user has linked it. Whether the account may make the call is checked at
 * admission.
 */
export function authenticateAccount(services: Services, operation: Operation): ApiMiddleware {
  return async (context, next) => {
    // Neither responses nor errors of authenticated calls may be cached.
    context.set('cache-control', 'no-store');
    if (operation.sessionTwin === undefined && usesSession(context)) {
      context.state.holder = await findSessionHolder(services, context, operation);
      await next().catch(rethrowForSession);
    } else {
      context.state.holder = await findKeyHolder(services, context, operation);
      await next();
    }
  };
}

/**
 * Checks in the order of the account area, so that each error says what to do next.
 * @throws AppError `origin_refused`, `unauthenticated`, `csrf_failed`, `not_found`
 */
async function findSessionHolder(
  services: Services,
  context: ApiContext,
  operation: Operation,
): Promise<SessionHolder> {
  // Also for reads: pages of other sites never get anything with a cookie, whatever the browser lets them send.
  requireOwnOrigin(services, context);
  const token = readSessionToken(services, context);
  const linkId = readLinkId(context);
  // No account has the id 0.
  const access = { token, linkId: linkId ?? 0 };
  const found = await findAccess(services, context, access);
  const { session } = found;
  if (session === null) throw sessionEnded();
  if (hasUnsafeMethod(operation)) requireCsrfToken(services, context, session);
  if (linkId === null) throw malformedAccount();
  const { web, log } = services;
  runInBackground(web.sessions.touch(session, context.ip), 'recording the use of a session', log);
  const holder = toSessionHolder(access, found);
  if (holder === null) throw noSuchLink(linkId);
  return holder;
}

/** Without a key, `invalid_api_key` can only mean that the account no longer exists. */
function rethrowForSession(error: unknown): never {
  throw toAppError(error).code === 'invalid_api_key' ? accountGone() : error;
}
