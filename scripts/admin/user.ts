import { dryRunBanUser, dryRunEndSessions } from '../../shared/admin/dry-run-access.ts';
import { describeUser, describeUserInFull } from '../../shared/admin/show-user.ts';
import {
  banUser,
  findUser,
  notLinked,
  revokeSessions,
  unbanUser,
  dryRunUnlink,
  unlinkUser,
  type UserDeps,
} from '../../shared/admin/users.ts';
import type { WebUser } from '../../shared/account-area/web-models.ts';
import { quote } from '../../shared/platform/runtime/to-printable.ts';
import {
  readInteger,
  CommandError,
  UsageError,
  type AdminContext,
  type AdminVerb,
  type ChangeContext,
} from './command.ts';
import { findAccountId } from './find-account.ts';
import { describeFailure } from './with-stores.ts';

/** Per user. The audit log covers 400 days. */
const maxEvents = 1000;

export const userVerbs: Record<string, AdminVerb> = {
  list: {
    usage: '',
    help: 'lists the users of the account area, oldest first',
    positionals: 0,
    options: [],
    columns: ['id', 'email', 'created_at', 'last_login_at', 'banned'],
    run: listUsers,
  },
  show: {
    usage: '<user> [--events 20]',
    help: 'shows the user’s linked accounts, sessions, and this number of the latest audit log events, 1 to 1000',
    positionals: 1,
    options: ['events'],
    run: showUser,
  },
  'revoke-sessions': {
    usage: '<user> [--dry-run]',
    help: 'immediately ends all sessions of the user, who can sign in again; --dry-run only counts them',
    positionals: 1,
    options: [],
    flags: ['dry-run'],
    isChange: true,
    run: endSessions,
  },
  ban: {
    usage: '<user> --reason "stolen mailbox" [--dry-run]',
    help: 'immediately ends all sessions of the user and refuses sign-in; keys of the user’s accounts keep working; if the user is already banned, --reason is optional and replaces the reason; --dry-run only counts the sessions',
    positionals: 1,
    options: [],
    flags: ['dry-run'],
    isChange: true,
    run: ban,
  },
  unban: {
    usage: '<user>',
    help: 'lets a banned user sign in again',
    positionals: 1,
    options: [],
    isChange: true,
    run: unban,
  },
  unlink: {
    usage: '<account> [--dry-run]',
    help: 'unlinks an account from its user, who is notified by mail; the account’s key keeps working; --dry-run only says whose it is',
    positionals: 1,
    options: [],
    flags: ['dry-run'],
    isChange: true,
    run: unlink,
  },
};

async function listUsers(context: AdminContext): Promise<unknown> {
  return readUsers(context);
}

async function* readUsers({ web }: AdminContext): AsyncGenerator<object> {
  for await (const user of web.users.list()) yield describeUser(user);
}

/** @throws CommandError if there is no user with that id or address */
async function findGiven(context: AdminContext): Promise<WebUser> {
  const given = context.positionals[0]!;
  const user = await findUser(context, given);
  if (user !== null) return user;
  throw new CommandError(
    `No user ${quote(given)}. Give an id or the full email address; "user list" lists all users, and "account show" shows the user of an account.`,
  );
}

/** If only the recording or the notice fails, prints a warning, because the change itself succeeded. */
const toUserDeps = (context: AdminContext): UserDeps => ({
  ...context,
  onUnnoted: (consequence, error) =>
    context.warn(
      `The command succeeded, but ${consequence}. Do not repeat it. Reason: ${describeFailure(error)}`,
    ),
});

async function showUser(context: AdminContext): Promise<unknown> {
  const events = readInteger(context.options, 'events', 20, 1, maxEvents);
  return await describeUserInFull(context, await findGiven(context), events);
}

async function endSessions(context: ChangeContext): Promise<unknown> {
  const user = await findGiven(context);
  if (context.flags.has('dry-run')) return await dryRunEndSessions(context, user);
  const { _id, email } = user;
  const sessions_ended = await revokeSessions(toUserDeps(context), context.trail, _id);
  return { id: _id, email, sessions_ended };
}

async function ban(context: ChangeContext): Promise<unknown> {
  const { reason } = context.options;
  if (reason === '') throw reasonRequired();
  const user = await findGiven(context);
  if (reason === undefined && user.bannedAt === null) throw reasonRequired();
  if (context.flags.has('dry-run')) return await dryRunBanUser(context, user);
  return await banUser(toUserDeps(context), context.trail, user, reason ?? null);
}

const reasonRequired = (): UsageError =>
  new UsageError('--reason is required, for example --reason "stolen mailbox".');

async function unban(context: ChangeContext): Promise<unknown> {
  return await unbanUser(toUserDeps(context), context.trail, await findGiven(context));
}

async function unlink(context: ChangeContext): Promise<unknown> {
  const link = await context.web.links.findByAccount(await findAccountId(context));
  if (link === null) throw notLinked();
  if (context.flags.has('dry-run')) return await dryRunUnlink(context, link);
  return await unlinkUser(toUserDeps(context), context.trail, link);
}
