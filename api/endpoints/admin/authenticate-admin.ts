// decision 0098
import { hashSecret, isSameHash } from '../../../shared/accounts/credentials.ts';
import type { AdminCaller } from '../../../shared/admin/admin-scope.ts';
import { allowsScope } from '../../../shared/contract/admin-terms.ts';
import { AppError } from '../../../shared/contract/errors.ts';
import { hasUnsafeMethod, type Operation } from '../../../shared/contract/operation.ts';
import { checkMetricsAccess } from '../../../shared/operator/check-metrics-access.ts';
import { requireOwnOrigin } from '../../account-area/steps/check-origin.ts';
import { callerNetwork } from '../../http/callers/caller-network.ts';
import type { ApiContext, ApiMiddleware } from '../../http/request/context.ts';
import { readQueryString } from '../../http/request/read-query-string.ts';
import { readCookie } from '../../http/request/session-cookies.ts';
import type { Services } from '../../services.ts';

/** Longer ones are not hashed. */
const maxAuthorizationLength = 4_096;
/** `\S+`, not `\S*`: otherwise a long run of blanks would cause slow backtracking. */
const bearer = /^Bearer +(\S+) *$/i;

const demandPath = '/v1/admin/demand';

/**
 * Hides the admin API while there is no token at all, except what monitoring reads. Without a right token, its unknown paths
 * and methods are refused like the others, so that they tell nothing.
 * @param isServed whether there is an operation with this method and path
 */
export function hideAdmin(
  services: Services,
  isServed: (method: string, path: string) => boolean,
): ApiMiddleware {
  return async (context, next) => {
    const { path, method } = context;
    if (!path.startsWith('/v1/admin/') || (path === demandPath && isServed(method, path))) {
      await next();
      return;
    }
    const exists = await services.admin.exists();
    // The response is that of an unknown path.
    if (!exists && path !== demandPath) return;
    if (exists && !isServed(method, path)) {
      context.set('cache-control', 'no-store');
      context.state.admin = await findCaller(services, context);
    }
    await next();
  };
}

/** Finds out which operator calls, and whether the scope of the token allows it. */
export function authenticateAdmin(services: Services, operation: Operation): ApiMiddleware {
  const { adminScope = 'all' } = operation;
  return async (context, next) => {
    context.set('cache-control', 'no-store');
    const caller = await findCaller(services, context);
    context.state.admin = caller;
    if (caller.session !== null && hasUnsafeMethod(operation)) {
      requireOwnOrigin(services, context);
      checkCsrfToken(caller.session.csrfToken, context);
    }
    if (!allowsScope(caller.scope, adminScope)) throw outsideScope(caller, adminScope);
    await next();
  };
}

/** Like `authenticateAdmin`, but also lets the operator's monitoring through. */
export function authenticateDemand(services: Services): ApiMiddleware {
  return async (context, next) => {
    context.set('cache-control', 'no-store');
    try {
      checkMetricsAccess(context.req, services.config);
    } catch (error) {
      // Without a token, the error says how monitoring gets access.
      if (readToken(context) === null && readCookie(context, services.config, 'admin') === null) throw error;
      context.state.admin = await findCaller(services, context);
    }
    await next();
  };
}

export function adminOf(context: ApiContext): AdminCaller {
  const { admin } = context.state;
  if (admin === undefined) throw noToken();
  return admin;
}

async function findCaller({ admin, config }: Services, context: ApiContext): Promise<AdminCaller> {
  const token = readToken(context);
  if (token !== null) return await admin.findByToken(token, callerNetwork(context.ip));
  const cookie = readCookie(context, config, 'admin');
  if (cookie === null) throw noToken();
  const caller = await admin.findBySession(cookie);
  if (caller === null) throw sessionEnded();
  return caller;
}

/** @returns null without a token. @throws AppError `invalid_api_key` for a header of another form */
function readToken(context: ApiContext): string | null {
  const { authorization = '' } = context.req.headers;
  if (authorization === '') return null;
  const token = authorization.length > maxAuthorizationLength ? undefined : bearer.exec(authorization)?.[1];
  if (token === undefined) throw noToken();
  return token;
}

/** Of a token that allows nothing but dry runs. */
const dryRunEnding = '.dry-run';

/**
 * Pages of the console ask what a change would do with a token that allows nothing else: a process of an earlier release,
 * which does not know `dry_run` and would make the change, rejects it.
 */
function checkCsrfToken(expected: string, context: ApiContext): void {
  const given = context.get('x-csrf-token');
  const isForDryRuns = given.endsWith(dryRunEnding);
  const token = isForDryRuns ? given.slice(0, -dryRunEnding.length) : given;
  const isAllowed = !isForDryRuns || readQueryString(context.querystring)['dry_run'] === 'true';
  if (isAllowed && isSameHash(hashSecret(expected), hashSecret(token))) return;
  throw new AppError('csrf_failed', {
    message:
      'The X-CSRF-Token header is missing or incorrect. Send the csrf_token of this session, which GET /v1/admin/session returns.',
  });
}

/** Without a token, the challenge must not contain an error (RFC 6750, 3.1). */
export const noToken = (): AppError =>
  new AppError('invalid_api_key', {
    message:
      'The request has no token of the admin API. Send it as "Authorization: Bearer <token>"; "admin token create" makes one.',
    headers: { 'www-authenticate': 'Bearer realm="admin"' },
  });

const sessionEnded = (): AppError =>
  new AppError('invalid_api_key', {
    message:
      'The session has ended, or its token has been revoked. Start another one with POST /v1/admin/session.',
    headers: { 'www-authenticate': 'Bearer realm="admin", error="invalid_token"' },
  });

const outsideScope = ({ name, scope }: AdminCaller, needed: string): AppError =>
  new AppError('forbidden', {
    message: `The token ${name} has the scope "${scope}", and this needs "${needed}". Use a token with that scope.`,
  });
