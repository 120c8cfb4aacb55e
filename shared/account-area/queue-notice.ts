import type { AuditAction } from './audit-actions.ts';
import type { AuditStore } from './audit-store.ts';
import type { Mail, NoticeEvent } from './mail.ts';
import type { MailQueue } from './mail-queue.ts';
import type { UserStore } from './user-store.ts';
import type { AuditEvent, WebUser } from './web-models.ts';

/** The mail sent after each action. Other actions are logged but not mailed. */
const noticeOf: Partial<Record<AuditAction, NoticeEvent>> = {
  'account-created': 'first-account',
  'account-linked': 'account-linked',
  'account-unlinked': 'account-unlinked',
  'key-revealed': 'key-revealed',
  'key-regenerated': 'key-regenerated',
  'refresh-replayed': 'sessions-ended',
};

/** Returns whether users are notified of this action by mail. */
export const isNotifiedByMail = (action: AuditAction): boolean => noticeOf[action] !== undefined;

export interface NoticeDeps {
  readonly audit: AuditStore;
  readonly users: UserStore;
  readonly mails: MailQueue;
}

/** Queues the mail that notifies a user of an event. Idempotent: an event is mailed once. */
export async function queueNotice({ audit, users, mails }: NoticeDeps, event: AuditEvent): Promise<void> {
  const user = await users.findById(event.userId);
  const mail = user === null ? null : toNotice(event, user);
  if (mail !== null) await mails.add(mail, { id: event._id });
  await audit.markQueued(event._id);
}

/**
 * Actions of support have no request id, because support uses a command. Of these, users are notified only of unlinked
 * accounts.
 */
function noticeEventOf({ action, requestId }: AuditEvent): NoticeEvent | undefined {
  return action === 'account-unlinked' && requestId === null
    ? 'account-unlinked-by-support'
    : noticeOf[action];
}

function toNotice(event: AuditEvent, { email, language }: WebUser): Mail | null {
  const notice = noticeEventOf(event);
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

/** How old a pending event must be. The process that wrote a newer one may still be handling it. */
const minPendingAgeMs = 60_000;
const maxEventsPerRun = 100;

/**
 * Queues the notices of events whose processes died or could not reach Redis. Several processes may do so concurrently.
 */
export async function queuePendingNotices(deps: NoticeDeps): Promise<void> {
  const pending = await deps.audit.findPending(new Date(Date.now() - minPendingAgeMs), maxEventsPerRun);
  const failures: unknown[] = [];
  for (const event of pending) {
    // A failure must not block the other notices.
    await queueNotice(deps, event).catch((error: unknown) => failures.push(error));
  }
  if (failures.length > 0)
    throw new AggregateError(failures, `${failures.length} notices could not be queued`);
}
