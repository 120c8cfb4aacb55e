import { AppError } from '../contract/errors.ts';
import type { AuditDetails, NewAuditEvent } from './audit-store.ts';
import { isNotifiedByMail, queueNotice, type NoticeDeps } from './queue-notice.ts';

export interface Recorded<T> {
  readonly result: T;
  /** Resolves when the outcome is recorded and the notice is queued. If this fails, a worker does both later. */
  readonly noted: Promise<void>;
}

/**
 * Runs an action that must be in the audit log. It is recorded first, and does not run if that fails. A client error
 * (4xx) is recorded as a failure. After any other error it is unknown whether the action took effect: the event keeps
 * the outcome `started`, and a worker notifies the user that the outcome is unknown. The same happens if this process
 * dies before the outcome is recorded (`queuePendingNotices`).
 * @param describe what the result adds to the event
 * @throws AppError `service_unavailable` if the action cannot be recorded; it does not run then
 */
export async function recordAction<T>(
  deps: NoticeDeps,
  event: NewAuditEvent,
  work: () => Promise<T>,
  describe: (result: T) => AuditDetails = () => ({}),
): Promise<Recorded<T>> {
  const { audit } = deps;
  const notice = isNotifiedByMail(event.action) ? 'pending' : 'none';
  const eventId = await audit.start({ ...event, outcome: 'started', notice });
  let result: T;
  try {
    result = await work();
  } catch (error) {
    if (isClientError(error)) {
      await audit.finish(eventId, 'failed').catch(() => {
        // The event keeps the outcome `started`: an unnecessary notice is better than hiding the original error.
      });
    }
    throw error;
  }
  return { result, noted: finish(deps, eventId, describe(result)) };
}

const isClientError = (error: unknown): boolean => error instanceof AppError && error.status < 500;

async function finish(deps: NoticeDeps, eventId: string, details: AuditDetails): Promise<void> {
  const event = await deps.audit.finish(eventId, 'done', details);
  if (event?.notice === 'pending') await queueNotice(deps, event);
}
