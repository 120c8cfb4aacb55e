import type { NewAuditEvent } from '../account-area/audit-store.ts';
import { normalizeEmail } from '../encoding/email-address.ts';
import { MailQueue } from '../account-area/mail-queue.ts';
import { isNotifiedByMail } from '../account-area/queue-notice.ts';
import { recordAction } from '../account-area/record-action.ts';
import { unlinkAccount } from '../account-area/unlink-account.ts';
import type { WebLink, WebUser } from '../account-area/web-models.ts';
import { AppError } from '../contract/errors.ts';
import { cleanText } from '../contract/mask-secrets.ts';
import type { AdminAction } from './admin-action.ts';
import type { AdminDeps } from './admin-deps.ts';
import type { AuditTrail } from './audit-trail.ts';
import { toDryRun } from './dry-run.ts';
import { describeUser } from './show-user.ts';
import { toPage, type Page, type PageRequest } from './page.ts';

export interface UserDeps extends Pick<AdminDeps, 'web' | 'redis' | 'config'> {
  /**
   * Called if an action succeeded, but its end could not be noted for its user.
   * @param consequence what will happen now, as a clause
   */
  readonly onUnnoted: (consequence: string, error: unknown) => void;
}

/** @param given an id or an address. @returns null if there is no such user */
export async function findUser({ web }: Pick<AdminDeps, 'web'>, given: string): Promise<WebUser | null> {
  const read = normalizeEmail(given);
  return 'email' in read ? await web.users.findByEmail(read.email) : await web.users.findById(given);
}

/** Lists users of the account area, newest first. */
export async function listUsers(
  { web }: Pick<AdminDeps, 'web'>,
  { limit, after }: PageRequest,
): Promise<Page<WebUser>> {
  return toPage(await web.users.listPage(after, limit + 1), limit, ({ _id }) => _id);
}

/** Ends all sessions of a user. @returns how many */
export async function revokeSessions(deps: UserDeps, trail: AuditTrail, userId: string): Promise<number> {
  return await withEvent(
    deps,
    trail,
    { action: 'user.revoke-sessions', event: { action: 'sessions-revoked', userId } },
    () => deps.web.sessions.revokeAll(userId),
    (ended) => ({ sessions_ended: ended }),
  );
}

/**
 * Bans a user: ends all sessions, and refuses sign-in.
 * @param reason of the ban; null to keep that of a user who is banned already
 */
export async function banUser(deps: UserDeps, trail: AuditTrail, user: WebUser, reason: string | null) {
  const wasBanned = user.bannedAt !== null;
  if (reason === null && wasBanned) {
    const sessions_ended = await revokeSessions(deps, trail, user._id);
    return { ...describeUser(user), was_already_banned: true, sessions_ended };
  }
  const { users, sessions } = deps.web;
  return await withEvent(
    deps,
    trail,
    {
      action: 'user.ban',
      event: { action: 'user-banned', userId: user._id },
      before: { banned: wasBanned, ban_reason: user.banReason },
    },
    async () => {
      const banned = await users.ban(user._id, reason === null ? null : cleanText(reason));
      if (banned === null) throw noSuchUser(user._id);
      // Do this after the ban. A concurrent sign-in whose session starts later checks for the ban again.
      const sessions_ended = await sessions.revokeAll(user._id);
      return { ...describeUser(banned), was_already_banned: wasBanned, sessions_ended };
    },
    ({ banned, ban_reason, sessions_ended }) => ({ banned, ban_reason, sessions_ended }),
  );
}

export async function unbanUser(deps: UserDeps, trail: AuditTrail, user: WebUser) {
  if (user.bannedAt === null) return { ...describeUser(user), was_banned: false };
  return await withEvent(
    deps,
    trail,
    {
      action: 'user.unban',
      event: { action: 'user-unbanned', userId: user._id },
      before: { banned: true, ban_reason: user.banReason },
    },
    async () => {
      const unbanned = await deps.web.users.unban(user._id);
      if (unbanned === null) throw noSuchUser(user._id);
      return { ...describeUser(unbanned), was_banned: true };
    },
    () => ({ banned: false }),
  );
}

/** Unlinks an account from its user, who is notified by mail. */
export async function unlinkUser(deps: UserDeps, trail: AuditTrail, link: WebLink) {
  const { web } = deps;
  const { userId, _id: linkId, label, accountId } = link;
  // Look up the user first. After the unlinking, a failed lookup would make a completed change look like a failed one.
  const user = await web.users.findById(userId);
  const event = { action: 'account-unlinked', userId, linkId, accountId, label } as const;
  await withEvent(
    deps,
    trail,
    { action: 'user.unlink', event, accountId, before: { account: accountId, link: linkId } },
    async () => {
      if (!(await unlinkAccount(web, link))) throw notLinked();
    },
    () => null,
  );
  return { id: accountId, label, user_id: userId, email: user?.email ?? null };
}

/** What unlinking an account would do. */
export async function dryRunUnlink({ web }: Pick<UserDeps, 'web'>, { userId, label }: WebLink) {
  const user = await web.users.findById(userId);
  const links = await web.links.list(userId);
  return toDryRun({ user_id: userId, email: user?.email ?? null, label, other_accounts: links.length - 1 });
}

export const notLinked = (): AppError =>
  new AppError('not_found', { message: 'No user has linked this account.' });

const noSuchUser = (id: string): AppError =>
  new AppError('not_found', { message: `The user ${id} no longer exists.` });

interface UserChange {
  readonly action: AdminAction;
  /** The same in the log of the account area. */
  readonly event: NewAuditEvent;
  /** Whose changes it is among, too. */
  readonly accountId?: string;
  readonly before?: object;
}

/**
 * Makes a change that is both in the log of operators and in that of the account area. Records the outcome and queues
 * the notice before it returns. If only that fails, the change has succeeded and must not be repeated.
 */
async function withEvent<T>(
  { web, redis, config, onUnnoted }: UserDeps,
  trail: AuditTrail,
  { action, event, ...change }: UserChange,
  work: () => Promise<T>,
  describe: (result: T) => object | null,
): Promise<T> {
  const mails = new MailQueue(redis, config);
  const { requestId } = trail.actor;
  try {
    return await trail.run(
      { action, id: event.userId, ...change },
      async () => {
        const { result, noted } = await recordAction({ ...web, mails }, { ...event, requestId }, work);
        await noted.catch((error: unknown) => {
          onUnnoted(
            isNotifiedByMail(event.action)
              ? 'the mail that notifies the user is not queued yet; a worker will queue it within a few minutes'
              : 'the audit log may continue to show it as started',
            error,
          );
        });
        return result;
      },
      describe,
    );
  } finally {
    await mails.close();
  }
}
