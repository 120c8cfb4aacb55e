import type { WebUser } from '../../../shared/account-area/web-models.ts';
import { dryRunBanUser, dryRunEndSessions } from '../../../shared/admin/dry-run-access.ts';
import { describeUser, describeUserInFull } from '../../../shared/admin/show-user.ts';
import {
  banUser as banInStores,
  findUser,
  listUsers as listInStores,
  revokeSessions,
  unbanUser as unbanInStores,
} from '../../../shared/admin/users.ts';
import { AppError } from '../../../shared/contract/errors.ts';
import { operations } from '../../contract/operations.ts';
import { inDatabaseTurn } from '../../http/request/in-database-turn.ts';
import { readFromDatabase } from '../../http/request/read-turns.ts';
import type { Services } from '../../services.ts';
import { defineAdminEndpoint, pageOf, presentPage, trailOf } from './define-admin-endpoint.ts';
import { toUserDeps } from './to-user-deps.ts';

async function find(services: Services, given: string): Promise<WebUser> {
  const user = await findUser(services, given);
  if (user !== null) return user;
  throw new AppError('not_found', {
    message: 'There is no user with this id or address. GET /v1/admin/users lists them.',
  });
}

export const listUsers = defineAdminEndpoint(
  operations.listUsers,
  (services) => (context) =>
    readFromDatabase(services, context, 'list', async () =>
      presentPage(await listInStores(services, pageOf(context.state.query)), describeUser),
    ),
);

export const getUser = defineAdminEndpoint(
  operations.getUser,
  (services) => (context) =>
    readFromDatabase(services, context, 'list', async () => {
      const user = await find(services, context.state.path.user_id);
      return await describeUserInFull(services, user, context.state.query.events);
    }),
);

export const banUser = defineAdminEndpoint(
  operations.banUser,
  (services) => (context) =>
    inDatabaseTurn(services, context, async () => {
      const user = await find(services, context.state.path.user_id);
      const { reason } = context.state.body;
      if (context.state.query.dry_run) return await dryRunBanUser(services, user);
      return await banInStores(toUserDeps(services, context), trailOf(services, context), user, reason);
    }),
);

export const unbanUser = defineAdminEndpoint(
  operations.unbanUser,
  (services) => (context) =>
    inDatabaseTurn(services, context, async () => {
      const user = await find(services, context.state.path.user_id);
      return await unbanInStores(toUserDeps(services, context), trailOf(services, context), user);
    }),
);

export const revokeUserSessions = defineAdminEndpoint(
  operations.revokeUserSessions,
  (services) => (context) =>
    inDatabaseTurn(services, context, async () => {
      const user = await find(services, context.state.path.user_id);
      if (context.state.query.dry_run) return await dryRunEndSessions(services, user);
      const { _id: id, email } = user;
      const deps = toUserDeps(services, context);
      return { id, email, sessions_ended: await revokeSessions(deps, trailOf(services, context), id) };
    }),
);
