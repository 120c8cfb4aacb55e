import type { Schema } from '../../admin/api.ts';

export interface ChangedField {
  readonly name: string;
  /** Undefined for a field that only the event has. */
  readonly before: unknown;
  readonly after: unknown;
}

/** What the name of the event says already, and ids. */
const implied = ['banned', 'credit', 'id'];
/** Of the many fields of a new account. */
const ofCreation = ['name', 'email', 'balance', 'free_requests', 'requests_per_minute'];

const isSame = (before: unknown, after: unknown): boolean =>
  JSON.stringify(before ?? null) === JSON.stringify(after ?? null) || (before === undefined && after === 0);

/** Returns what an event of the audit log has changed. */
export function listChanges({
  action,
  reason,
  before,
  after,
}: Pick<Schema<'AdminAuditEvent'>, 'action' | 'reason' | 'before' | 'after'>): readonly ChangedField[] {
  const old = (before ?? {}) as Readonly<Record<string, unknown>>;
  return (
    Object.entries((after ?? {}) as Readonly<Record<string, unknown>>)
      .filter(
        ([name]) => !implied.includes(name) && (action !== 'account.create' || ofCreation.includes(name)),
      )
      .filter(([name, value]) => !isSame(old[name], value))
      // The reason of a ban is that of the change.
      .filter(([name, value]) => name !== 'ban_reason' || value !== reason)
      .map(([name, value]) => ({ name, before: old[name], after: value }))
  );
}
