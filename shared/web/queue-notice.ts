import type { AuditStore } from './audit-store.ts';
import type { Mail, NoticeEvent } from './mail.ts';
import type { MailQueue } from './mail-queue.ts';
import type { UserStore } from './user-store.ts';
import type { AuditAction, AuditEvent, WebUser } from './web-models.ts';

/** The mail that each action is followed by; those that are not here are only written down. */
const noticeOf: Partial<Record<AuditAction, NoticeEvent>> = {
  'account-created': 'first-account',
  'account-linked': 'account-linked',
  'account-unlinked': 'account-unlinked',
  'key-revealed': 'key-revealed',
  'key-regenerated': 'key-regenerated',
  'refresh-replayed': 'sessions-ended',
};

/** Whether users are told of such an action by mail. */
export const isMailed = (action: AuditAction): boolean => noticeOf[action] !== undefined;

export interface NoticeDependencies {
  readonly audit: AuditStore;
  readonly users: UserStore;
  readonly mails: MailQueue;
}

/** Queues the mail that tells a user of an event. Safe to repeat: an event is mailed once. */
export async function queueNotice(
  { audit, users, mails }: NoticeDependencies,
  event: AuditEvent,
): Promise<void> {
  const user = await users.findById(event.userId);
  const mail = user === null ? null : toNotice(event, user);
  if (mail !== null) await mails.add(mail, { id: event._id });
  await audit.markQueued(event._id);
}

/** Actions of support come from a command, which has no request. Of these only an unlink is mailed. */
function findNotice({ action, requestId }: AuditEvent): NoticeEvent | undefined {
  return action === 'account-unlinked' && requestId === null
    ? 'account-unlinked-by-support'
    : noticeOf[action];
}

function toNotice(event: AuditEvent, { email, language }: WebUser): Mail | null {
  const notice = findNotice(event);
  if (notice === undefined) return null;
  const { label: accountLabel, at, address, device, outcome } = event;
  return {
    kind: 'notice',
    email,
    language,
    event: notice,
    accountLabel,
    at: at.getTime(),
    address,
    device,
    isCertain: outcome === 'done',
  };
}

/** An event that is younger may be in the hands of the process that wrote it, which may wait long for MongoDB. */
const pendingAfterMs = 60_000;
const maxPending = 100;

/** Queues the notices of events whose processes died, or did not reach Redis. Safe to run by several at once. */
export async function queuePendingNotices(dependencies: NoticeDependencies): Promise<void> {
  const pending = await dependencies.audit.findPending(new Date(Date.now() - pendingAfterMs), maxPending);
  const failures: unknown[] = [];
  for (const event of pending) {
    // One that cannot be queued does not hold up those behind it.
    await queueNotice(dependencies, event).catch((error: unknown) => failures.push(error));
  }
  if (failures.length > 0)
    throw new AggregateError(failures, `${failures.length} notices could not be queued`);
}
