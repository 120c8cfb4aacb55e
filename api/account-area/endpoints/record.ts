import { runInBackground } from '../../../shared/platform/runtime/run-in-background.ts';
import type { AuditDetails, NewAuditEvent } from '../../../shared/account-area/audit-store.ts';
import { recordAction } from '../../../shared/account-area/record-action.ts';
import type { WebLink } from '../../../shared/account-area/web-models.ts';
import type { ApiContext } from '../../http/request/context.ts';
import type { Services } from '../../services.ts';
import { originOf } from './caller.ts';

/** An action and its subject. The actor and the origin are taken from the request. */
export type WebAction = Pick<NewAuditEvent, 'action' | 'userId'> &
  Partial<Pick<NewAuditEvent, 'linkId' | 'accountId' | 'label' | 'sessionId'>>;

/** The audit log's fields for a link. */
export const subjectOf = ({ userId, _id, accountId, label }: WebLink) => ({
  userId,
  linkId: _id,
  accountId,
  label,
});

/** Runs a user's action, records it in the audit log, and notifies the user by mail if the action requires it. */
export async function record<T>(
  { web, log }: Services,
  context: ApiContext,
  action: WebAction,
  work: () => Promise<T>,
  describe?: (result: T) => AuditDetails,
): Promise<T> {
  const { session, requestId } = context.state;
  const event = { sessionId: session?._id ?? null, ...action, ...originOf(context), requestId };
  const { result, noted } = await recordAction(web, event, work, describe);
  web.unfinished.add(noted);
  runInBackground(
    noted.finally(() => web.unfinished.delete(noted)),
    'recording the end of an action',
    log,
  );
  return result;
}
