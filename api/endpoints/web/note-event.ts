import { runInBackground } from '../../../shared/runtime/run-in-background.ts';
import type { NewAuditEvent } from '../../../shared/web/audit-store.ts';
import { queueNotice } from '../../../shared/web/queue-notice.ts';
import type { WebLink } from '../../../shared/web/web-models.ts';
import type { ApiContext } from '../../middleware/request-context.ts';
import type { Services } from '../../services.ts';
import { originOf } from './caller.ts';

/** What was done, and on what. Who did it, and from where, the request says. */
export type WebAction = Pick<NewAuditEvent, 'action' | 'userId'> &
  Partial<Pick<NewAuditEvent, 'linkId' | 'accountId' | 'label' | 'sessionId'>>;

function describe(context: ApiContext, action: WebAction) {
  return {
    linkId: null,
    accountId: null,
    label: null,
    sessionId: context.state.session?._id ?? null,
    ...action,
    ...originOf(context),
    requestId: context.state.requestId,
  };
}

/** What is written down of a link. */
export const subjectOf = ({ userId, _id, accountId, label }: WebLink) => ({
  userId,
  linkId: _id,
  accountId,
  label,
});

/** Writes down what was done. */
export async function noteEvent({ web }: Services, context: ApiContext, action: WebAction): Promise<void> {
  await web.audit.start({ ...describe(context, action), outcome: 'done', notice: 'none' });
}

/** Writes down what has happened, and mails it to the user. */
export async function sendNotice(services: Services, context: ApiContext, action: WebAction): Promise<void> {
  await withNotice(services, context, action, async () => undefined);
}

/**
 * Does what a user must hear of. It is written down before it is done: nothing happens that cannot be, and where this
 * process dies in between, the user is told by a worker (`sendPendingNotices`).
 * @throws AppError `service_unavailable` where it cannot be written down: then nothing is done
 */
export async function withNotice<T>(
  services: Services,
  context: ApiContext,
  action: WebAction,
  work: () => Promise<T>,
): Promise<T> {
  const { web, log } = services;
  const eventId = await web.audit.start({
    ...describe(context, action),
    outcome: 'started',
    notice: 'pending',
  });
  let result: T;
  try {
    result = await work();
  } catch (error) {
    runInBackground(web.audit.finish(eventId, 'failed'), 'noting that an action failed', log);
    throw error;
  }
  runInBackground(tellUser(services, eventId), 'mailing a notice', log);
  return result;
}

async function tellUser({ web }: Services, eventId: string): Promise<void> {
  const event = await web.audit.finish(eventId, 'done');
  if (event !== null) await queueNotice(web, event);
}
