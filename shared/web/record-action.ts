import { AppError } from '../contract/errors.ts';
import type { NewAuditEvent } from './audit-store.ts';
import { isMailed, queueNotice, type NoticeDeps } from './queue-notice.ts';

export interface Recorded<T> {
  readonly result: T;
  /** Resolves when the outcome is recorded and the notice is queued. A worker completes later what fails here. */
  readonly noted: Promise<void>;
}

/**
 * Runs an action that must be in the audit log. The action is recorded before it runs: if that fails, it does not
 * run. A refusal is recorded as a failure. After any other error it is unknown whether the action took effect: the
 * event stays open, and a worker tells the user so. The same happens if this process dies in between
 * (`queuePendingNotices`).
 * @throws AppError `service_unavailable` if the action cannot be recorded; it is then not run
 */
export async function recordAction<T>(
  dependencies: NoticeDeps,
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
        // The event stays open: an unnecessary notice is better than an error in place of the refusal.
      });
    }
    throw error;
  }
  return { result, noted: finish(dependencies, eventId) };
}

const isRefusal = (error: unknown): boolean => error instanceof AppError && error.status < 500;

async function finish(dependencies: NoticeDeps, eventId: string): Promise<void> {
  const event = await dependencies.audit.finish(eventId, 'done');
  if (event?.notice === 'pending') await queueNotice(dependencies, event);
}
