import { runInBackground } from '../../../shared/runtime/run-in-background.ts';
import type { NewAuditEvent } from '../../../shared/web/audit-store.ts';
import { recordAction } from '../../../shared/web/record-action.ts';
import type { WebLink } from '../../../shared/web/web-models.ts';
import type { ApiContext } from '../../middleware/request-context.ts';
import type { Services } from '../../services.ts';
import { originOf } from './caller.ts';

/** What is done, and to what. By whom and from where, the request says. */
export type WebAction = Pick<NewAuditEvent, 'action' | 'userId'> &
  Partial<Pick<NewAuditEvent, 'linkId' | 'accountId' | 'label' | 'sessionId'>>;

/** What is written down of a link. */
export const subjectOf = ({ userId, _id, accountId, label }: WebLink) => ({
  userId,
  linkId: _id,
  accountId,
  label,
});

/** Does an action of a user, writes it down, and has the user told by mail where such an action is mailed. */
export async function record<T>(
  { web, log }: Services,
  context: ApiContext,
  action: WebAction,
  work: () => Promise<T>,
): Promise<T> {
  const { session, requestId } = context.state;
  const event = { sessionId: session?._id ?? null, ...action, ...originOf(context), requestId };
  const { result, noted } = await recordAction(web, event, work);
  web.unfinished.add(noted);
  runInBackground(
    noted.finally(() => web.unfinished.delete(noted)),
    'noting the end of an action',
    log,
  );
  return result;
}
