import { AppError } from '../contract/errors.ts';
import type { NewAuditEvent } from './audit-store.ts';
import { isMailed, queueNotice, type NoticeDependencies } from './queue-notice.ts';

export interface Recorded<T> {
  readonly result: T;
  /** Resolves when its end is written down and its notice is queued. What fails of that, a worker does later. */
  readonly noted: Promise<void>;
}

/**
 * Does what the audit log must tell of. It is written down before it is done: nothing is done that cannot be. A refusal
 * is written down as a failure. After any other error nobody knows whether it was done: the event stays open, and a
 * worker tells the user so, as it does where this process dies in between (`queuePendingNotices`).
 * @throws AppError `service_unavailable` where it cannot be written down: then nothing is done
 */
export async function recordAction<T>(
  dependencies: NoticeDependencies,
  event: NewAuditEvent,
  work: () => Promise<T>,
): Promise<Recorded<T>> {
  const { audit } = dependencies;
  const notice = isMailed(event.action) ? 'pending' : 'none';
  const eventId = await audit.start({ ...event, outcome: 'started', notice });
  let result: T;
  try {
    result = await work();
  } catch (error) {
    if (isRefusal(error)) {
      await audit.finish(eventId, 'failed').catch(() => {
        // The event stays open: a notice too many does less harm than an error in place of the refusal.
      });
    }
    throw error;
  }
  return { result, noted: finish(dependencies, eventId) };
}

const isRefusal = (error: unknown): boolean => error instanceof AppError && error.status < 500;

async function finish(dependencies: NoticeDependencies, eventId: string): Promise<void> {
  const event = await dependencies.audit.finish(eventId, 'done');
  if (event?.notice === 'pending') await queueNotice(dependencies, event);
}
