import { AuditLogStore } from '../../../shared/admin/audit-log-store.ts';
import { AuditTrail } from '../../../shared/admin/audit-trail.ts';
import type { Page, PageRequest } from '../../../shared/admin/page.ts';
import { invalidField } from '../../../shared/contract/errors.ts';
import { hasUnsafeMethod, type Operation } from '../../../shared/contract/operation.ts';
import { defineEndpoint, type ContextOf, type Endpoint } from '../../endpoint.ts';
import { beginInTurns } from '../../http/middleware/begin-in-turns.ts';
import { limitCalls } from '../../http/middleware/limit-account-calls.ts';
import { parseBody } from '../../http/middleware/parse-body.ts';
import type { ApiContext, ApiMiddleware } from '../../http/request/context.ts';
import { readQueryString } from '../../http/request/read-query-string.ts';
import type { Services } from '../../services.ts';
import { adminOf, authenticateAdmin } from './authenticate-admin.ts';

/** Defines how an operation of the admin API is served. What its handler returns is the body of the response. */
export const defineAdminEndpoint = <const O extends Operation>(
  operation: O,
  createHandler: (services: Services) => (context: ContextOf<O>) => Promise<object | null>,
): Endpoint<O> =>
  defineEndpoint(
    operation,
    [
      beginInTurns,
      authenticateAdmin,
      limitCalls,
      ...(hasUnsafeMethod(operation) ? [refuseUnknownQuery] : []),
      ...(operation.body === undefined ? [] : [parseBody]),
    ],
    (services) => {
      const handle = createHandler(services);
      return async (context) => {
        const body = await handle(context);
        if (operation.status !== undefined) context.status = operation.status;
        if (body !== null) context.body = body;
      };
    },
  );

/**
 * Refuses a change with a parameter that it does not have. Elsewhere they are ignored, but here the parameter may be a
 * misspelled `dry_run`, or one of an operation that has none, and the change would be made.
 */
export function refuseUnknownQuery(_: Services, operation: Operation): ApiMiddleware {
  const { properties = {} } = (operation.query ?? {}) as { readonly properties?: object };
  const known = Object.keys(properties);
  return async (context, next) => {
    for (const name of Object.keys(readQueryString(context.querystring)))
      if (!known.includes(name))
        throw invalidField(
          ['query', name],
          known.length === 0
            ? 'is unknown here: this operation has no query parameters'
            : `is unknown here: this operation has ${known.join(', ')}`,
        );
    await next();
  };
}

/** A call that may say why it changes something: in its query, or in its body if that has a reason. */
type ReasonedContext = ApiContext & {
  readonly state:
    | { readonly query: { readonly reason?: string } }
    | { readonly body: { readonly reason: string } };
};

function readReason({ state }: ReasonedContext): string | null {
  const { query, body } = state as { query?: { reason?: string }; body?: { reason?: string } };
  return query?.reason ?? body?.reason ?? null;
}

/** Opens the audit log for the changes of a call. */
export function trailOf({ mongo, log }: Services, context: ReasonedContext): AuditTrail {
  const { name: token } = adminOf(context);
  const { requestId } = context.state;
  return new AuditTrail({
    store: new AuditLogStore(mongo.db),
    actor: { token, osUser: null, requestId, address: context.ip },
    reason: readReason(context),
    onUnrecorded: (error) =>
      log.warn({ requestId, token, err: error }, 'the end of a change by an operator was not recorded'),
  });
}

/** The part of a list that a query asks for. */
export const pageOf = ({
  limit,
  after = null,
}: {
  readonly limit: number;
  readonly after?: string | null | undefined;
}): PageRequest => ({ limit, after });

/** Presents a page of a list. */
export const presentPage = <T, R>({ rows, hasMore, lastId }: Page<T>, present: (row: T) => R) => ({
  data: rows.map((row) => present(row)),
  has_more: hasMore,
  last_id: lastId,
});
