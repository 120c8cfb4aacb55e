import { normalizeEmail } from '../../shared/encoding/email-address.ts';
import { unlinkAccount } from '../../shared/account-area/unlink-account.ts';
import type { WebUser } from '../../shared/account-area/web-models.ts';
import { readInteger, CommandError, UsageError, type AdminContext, type AdminVerb } from './command.ts';
import { findAccountId } from './find-account.ts';
import { describeUser, describeUserInFull } from './show-user.ts';
import { quote } from '../../shared/platform/runtime/to-printable.ts';
import type { NewAuditEvent } from '../../shared/account-area/audit-store.ts';
import { MailQueue } from '../../shared/account-area/mail-queue.ts';
import { isNotifiedByMail } from '../../shared/account-area/queue-notice.ts';
import { recordAction } from '../../shared/account-area/record-action.ts';
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
    usage: '<user>',
    help: 'immediately ends all sessions of the user, who can sign in again',
    positionals: 1,
    options: [],
    run: revokeSessions,
  },
  ban: {
    usage: '<user> --reason "stolen mailbox"',
    help: 'immediately ends all sessions of the user and refuses sign-in; keys of the user’s accounts keep working; if the user is already banned, --reason is optional and replaces the reason',
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
    help: 'unlinks an account from its user, who is notified by mail; the account’s key keeps working',
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

/** @throws CommandError if there is no user with that id or address */
async function findUser({ web, positionals }: AdminContext): Promise<WebUser> {
  const given = positionals[0]!;
  const read = normalizeEmail(given);
  const user = 'email' in read ? await web.users.findByEmail(read.email) : await web.users.findById(given);
  if (user === null) throw noSuchUser(given);
  return user;
}

const noSuchUser = (given: string): CommandError =>
  new CommandError(
    `No user ${quote(given)}. Give an id or the full email address; "user list" lists all users, and "account show" shows the user of an account.`,
  );

async function showUser(context: AdminContext): Promise<unknown> {
  const events = readInteger(context.options, 'events', 20, 1, maxEvents);
  return await describeUserInFull(context, await findUser(context), events);
}

async function revokeSessions(context: AdminContext): Promise<unknown> {
  const { _id, email } = await findUser(context);
  return { id: _id, email, sessions_ended: await endSessions(context, _id) };
}

/** @returns how many sessions were ended */
const endSessions = (context: AdminContext, userId: string): Promise<number> =>
  withEvent(context, { action: 'sessions-revoked', userId }, () => context.web.sessions.revokeAll(userId));

async function banUser(context: AdminContext): Promise<unknown> {
  const { reason } = context.options;
  if (reason === '') throw reasonRequired();
  const user = await findUser(context);
  if (user.bannedAt !== null && reason === undefined) {
    const sessions_ended = await endSessions(context, user._id);
    return { ...describeUser(user), was_already_banned: true, sessions_ended };
  }
  if (reason === undefined) throw reasonRequired();
  const { users, sessions } = context.web;
  return await withEvent(context, { action: 'user-banned', userId: user._id }, async () => {
    const banned = await users.ban(user._id, reason);
    if (banned === null) throw noSuchUser(user._id);
    // Do this after the ban. A concurrent sign-in whose session starts later checks for the ban again.
    const sessions_ended = await sessions.revokeAll(user._id);
    return { ...describeUser(banned), was_already_banned: user.bannedAt !== null, sessions_ended };
  });
}

const reasonRequired = (): UsageError =>
  new UsageError('--reason is required, for example --reason "stolen mailbox".');

async function unbanUser(context: AdminContext): Promise<unknown> {
  const user = await findUser(context);
  if (user.bannedAt === null) return { ...describeUser(user), was_banned: false };
  return await withEvent(context, { action: 'user-unbanned', userId: user._id }, async () => {
    const unbanned = await context.web.users.unban(user._id);
    if (unbanned === null) throw noSuchUser(user._id);
    return { ...describeUser(unbanned), was_banned: true };
  });
}

async function unlink(context: AdminContext): Promise<unknown> {
  const { web } = context;
  const accountId = await findAccountId(context);
  const link = await web.links.findByAccount(accountId);
  if (link === null) throw notLinked();
  const { userId, _id: linkId, label } = link;
  // Look up the user first. After the unlinking, a failed lookup would make a completed command look like a failed one.
  const user = await web.users.findById(userId);
  const event = { action: 'account-unlinked', userId, linkId, accountId, label } as const;
  await withEvent(context, event, async () => {
    if (!(await unlinkAccount(web, link))) throw notLinked();
  });
  return { id: accountId, label, user_id: userId, email: user?.email ?? null };
}

const notLinked = (): CommandError => new CommandError('No user has linked this account.');

/**
 * Runs an action that must be in the audit log, as the account area does. Records the outcome and queues the notice
 * before the command exits. If recording or queueing fails, only prints a warning, because the action itself succeeded
 * and must not be repeated.
 */
async function withEvent<T>(
  { web, redis, config, warn }: Pick<AdminContext, 'web' | 'redis' | 'config' | 'warn'>,
  event: NewAuditEvent,
  work: () => Promise<T>,
): Promise<T> {
  const mails = new MailQueue(redis, config);
  try {
    const { result, noted } = await recordAction({ ...web, mails }, event, work);
    await noted.catch((error: unknown) => {
      const consequence = isNotifiedByMail(event.action)
        ? 'the mail that notifies the user is not queued yet; a worker will queue it within a few minutes'
        : 'the audit log may continue to show it as started';
      warn(`The command succeeded, but ${consequence}. Do not repeat it. Reason: ${describeFailure(error)}`);
    });
    return result;
  } finally {
    await mails.close();
  }
}
