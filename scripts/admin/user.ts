import { shorten } from '../../shared/runtime/shorten.ts';
import { normalizeEmail } from '../../shared/web/email-address.ts';
import { unlinkAccount } from '../../shared/web/unlink-account.ts';
import type { WebUser } from '../../shared/web/web-models.ts';
import { findAccountId } from './account.ts';
import { RefusedError, UsageError, type AdminContext, type AdminVerb } from './command.ts';
import { describeUser, describeUserInFull } from './show-user.ts';
import { toPrintable } from './to-printable.ts';
import { withEvent } from './with-event.ts';

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
    usage: '<user>',
    help: 'shows the user’s linked accounts, sessions, and last 20 events of the audit log',
    positionals: 1,
    options: [],
    run: showUser,
  },
  'revoke-sessions': {
    usage: '<user>',
    help: 'ends all sessions of the user at once; the user can sign in again',
    positionals: 1,
    options: [],
    run: revokeSessions,
  },
  ban: {
    usage: '<user> --reason "stolen mailbox"',
    help: 'ends all sessions of the user at once and refuses sign-in; keys of the user’s accounts keep working',
    positionals: 1,
    options: ['reason'],
    run: banUser,
  },
  unban: {
    usage: '<user>',
    help: 'lets a banned user sign in again',
    positionals: 1,
    options: [],
    run: unbanUser,
  },
  unlink: {
    usage: '<account>',
    help: 'unlinks an account from its user, who is told by mail; the account’s key keeps working',
    positionals: 1,
    options: [],
    run: unlink,
  },
};

async function listUsers(context: AdminContext): Promise<unknown> {
  return readUsers(context);
}

async function* readUsers({ web }: AdminContext): AsyncGenerator<object> {
  for await (const user of web.users.list()) yield describeUser(user);
}

/** @throws RefusedError where there is no user of that id or address */
async function findUser({ web, positionals }: AdminContext): Promise<WebUser> {
  const given = positionals[0]!;
  const read = normalizeEmail(given);
  const user = 'email' in read ? await web.users.findByEmail(read.email) : await web.users.findById(given);
  if (user === null) throw noSuchUser(given);
  return user;
}

const noSuchUser = (given: string): RefusedError =>
  new RefusedError(
    `No user "${toPrintable(shorten(given, 100))}". Give an id or the full email address; "user list" lists all users.`,
  );

async function showUser(context: AdminContext): Promise<unknown> {
  return await describeUserInFull(context, await findUser(context));
}

async function revokeSessions(context: AdminContext): Promise<unknown> {
  const { _id: userId, email } = await findUser(context);
  const sessionsEnded = await withEvent(context, { action: 'sessions-revoked', userId }, () =>
    context.web.sessions.revokeAll(userId),
  );
  return { id: userId, email, sessions_ended: sessionsEnded };
}

async function banUser(context: AdminContext): Promise<unknown> {
  const reason = context.options['reason'];
  if (!reason) throw new UsageError('--reason is required, for example --reason "stolen mailbox".');
  const { _id: userId } = await findUser(context);
  const { users, sessions } = context.web;
  return await withEvent(context, { action: 'user-banned', userId }, async () => {
    const user = await users.ban(userId, reason);
    if (user === null) throw noSuchUser(userId);
    // After the ban: a sign-in under way that started its session later looks for the ban once more.
    return { ...describeUser(user), sessions_ended: await sessions.revokeAll(userId) };
  });
}

async function unbanUser(context: AdminContext): Promise<unknown> {
  const { _id: userId } = await findUser(context);
  return await withEvent(context, { action: 'user-unbanned', userId }, async () => {
    const user = await context.web.users.unban(userId);
    if (user === null) throw noSuchUser(userId);
    return describeUser(user);
  });
}

async function unlink(context: AdminContext): Promise<unknown> {
  const { web } = context;
  const accountId = await findAccountId(context);
  const link = await web.links.findByAccount(accountId);
  if (link === null) throw notLinked();
  const { userId, _id: linkId, label } = link;
  // Looked up first: once the account is unlinked, nothing may fail that only tells of it.
  const user = await web.users.findById(userId);
  const event = { action: 'account-unlinked', userId, linkId, accountId, label } as const;
  await withEvent(context, event, async () => {
    if (!(await unlinkAccount(web, link))) throw notLinked();
  });
  return { id: accountId, label, user_id: userId, email: user?.email ?? null };
}

const notLinked = (): RefusedError => new RefusedError('No user has linked this account.');
