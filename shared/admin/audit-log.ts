import { AppError } from '../contract/errors.ts';
import { resourceTypes } from './admin-action.ts';
import type { AuditDocument, AuditFilter } from './audit-log-store.ts';

/** An event as shown to operators. */
export const describeEvent = (event: AuditDocument) => ({
  id: event._id,
  at: event.at.toISOString(),
  token: event.token,
  os_user: event.osUser,
  action: event.action,
  resource: `${event.resourceType}:${event.resourceId}`,
  reason: event.reason ?? null,
  outcome: event.outcome,
  ended_at: event.endedAt?.toISOString() ?? null,
  before: event.before,
  after: event.after,
  error: event.error,
  request_id: event.requestId,
  address: event.address,
});

/**
 * Reads a resource such as `account:0197…`, `account` for all of that type, or `:0197…` for any type.
 * @throws AppError `validation_failed`
 */
export function readResource(text: string): Pick<AuditFilter, 'resourceType' | 'resourceId'> {
  const end = text.indexOf(':');
  const given = end < 0 ? text : text.slice(0, end);
  if (end === 0) return { resourceId: text.slice(1) };
  const resourceType = resourceTypes.find((type) => type === given);
  if (resourceType === undefined)
    throw new AppError('validation_failed', {
      message: `The resource must begin with one of: ${resourceTypes.join(', ')}, such as account:0197….`,
    });
  return end < 0 ? { resourceType } : { resourceType, resourceId: text.slice(end + 1) };
}
