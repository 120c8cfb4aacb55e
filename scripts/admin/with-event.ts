import type { NewAuditEvent } from '../../shared/account-area/audit-store.ts';
import { MailQueue } from '../../shared/account-area/mail-queue.ts';
import { isNotifiedByMail } from '../../shared/account-area/queue-notice.ts';
import { recordAction } from '../../shared/account-area/record-action.ts';
import type { AdminContext } from './command.ts';
import { describeFailure } from './with-stores.ts';

/**
 * Runs an action that must be in the audit log, as the account area does. Records the outcome and queues the notice
 * before the command exits. If recording or queueing fails, only prints a warning, because the action itself succeeded
 * and must not be repeated.
 */
export async function withEvent<T>(
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
