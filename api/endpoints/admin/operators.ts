import { describeEvent, readResource } from '../../../shared/admin/audit-log.ts';
import type { AdminCaller } from '../../../shared/admin/admin-scope.ts';
import { addAccountNames } from '../../../shared/admin/account-names.ts';
import { AuditLogStore, type AuditDocument } from '../../../shared/admin/audit-log-store.ts';
import { takePage, toPage } from '../../../shared/admin/page.ts';
import { dryRunRevokeToken } from '../../../shared/admin/dry-run-access.ts';
import { createToken, findToken, listTokens, revokeToken } from '../../../shared/admin/tokens.ts';
import { AppError } from '../../../shared/contract/errors.ts';
import { operations } from '../../contract/operations.ts';
import { inDatabaseTurn } from '../../http/request/in-database-turn.ts';
import { readFromDatabase } from '../../http/request/read-turns.ts';
import { readCookie, setCookie } from '../../http/request/session-cookies.ts';
import { readPeriodBounds } from '../read-period-bounds.ts';
import type { Services } from '../../services.ts';
import { adminOf, noToken } from './authenticate-admin.ts';
import { defineAdminEndpoint, pageOf, presentPage, trailOf } from './define-admin-endpoint.ts';

export const createAdminToken = defineAdminEndpoint(
  operations.createAdminToken,
  (services) => (context) =>
    inDatabaseTurn(services, context, async (timedOut) => {
      const trail = trailOf(services, context);
      const created = await createToken(services, trail, context.state.body, timedOut);
      // Other processes are told by the store.
      services.admin.tokens.invalidate();
      return created;
    }),
);

export const listAdminTokens = defineAdminEndpoint(
  operations.listAdminTokens,
  (services) => (context) =>
    readFromDatabase(services, context, 'list', async () => {
      const page = await takePage(await listTokens(services), pageOf(context.state.query), ({ id }) => id);
      return presentPage(page, (token) => token);
    }),
);

export const revokeAdminToken = defineAdminEndpoint(
  operations.revokeAdminToken,
  (services) => (context) =>
    inDatabaseTurn(services, context, async () => {
      const name = context.state.path.token_id;
      if (context.state.query.dry_run) {
        const token = await findToken(services, name);
        if (token !== null) return await dryRunRevokeToken(services, token);
      } else {
        const revoked = await revokeToken(services, trailOf(services, context), name);
        services.admin.tokens.invalidate();
        if (revoked !== null) return revoked;
      }
      throw new AppError('not_found', {
        message: 'There is no token with this name. GET /v1/admin/tokens lists them.',
      });
    }),
);

export const startAdminSession = defineAdminEndpoint(
  operations.startAdminSession,
  (services) => async (context) => {
    const caller = adminOf(context);
    if (caller.session !== null) throw noToken();
    const { cookie: token, session } = await services.admin.sessions.start(caller.secretHash);
    setCookie(context, services.config, 'admin', { token, expiresAt: session.expiresAt });
    return presentSession(caller, session);
  },
);

export const getAdminSession = defineAdminEndpoint(operations.getAdminSession, () => async (context) => {
  const caller = adminOf(context);
  if (caller.session === null)
    throw new AppError('not_found', {
      message: 'This call has no session but a token. POST /v1/admin/session starts one.',
    });
  return await Promise.resolve(presentSession(caller, caller.session));
});

const presentSession = (
  { name, scope }: AdminCaller,
  { csrfToken, expiresAt }: NonNullable<AdminCaller['session']>,
): object => ({ name, scope, csrf_token: csrfToken, expires_at: expiresAt.toISOString() });

export const endAdminSession = defineAdminEndpoint(
  operations.endAdminSession,
  (services) => async (context) => {
    const cookie = readCookie(context, services.config, 'admin');
    if (cookie !== null) await services.admin.sessions.end(cookie);
    setCookie(context, services.config, 'admin', null);
    return null;
  },
);

/** With the names of the accounts that were changed. */
const present = async (services: Services, events: readonly AuditDocument[]) =>
  await addAccountNames(services, events.map(describeEvent), ({ resource }) =>
    resource.startsWith('account:') ? resource.slice('account:'.length) : null,
  );

export const listAuditEvents = defineAdminEndpoint(
  operations.listAuditEvents,
  (services) => async (context) => {
    const { token, resource, ...bounds } = context.state.query;
    const { limit, after } = pageOf(context.state.query);
    const filter = {
      token,
      ...(resource === undefined ? {} : readResource(resource)),
      ...readPeriodBounds(bounds),
    };
    return await readFromDatabase(services, context, 'list', async () => {
      const found = await new AuditLogStore(services.mongo.db).list(filter, { after, limit: limit + 1 });
      const page = toPage(found, limit, ({ _id }) => _id);
      return presentPage({ ...page, rows: await present(services, page.rows) }, (row) => row);
    });
  },
);
export const getAuditEvent = defineAdminEndpoint(
  operations.getAuditEvent,
  (services) => (context) =>
    readFromDatabase(services, context, 'one', async () => {
      const event = await new AuditLogStore(services.mongo.db).findById(context.state.path.event_id);
      if (event === null)
        throw new AppError('not_found', {
          message: 'There is no change with this id. Changes are kept for 400 days.',
        });
      const [described] = await present(services, [event]);
      return described!;
    }),
);
