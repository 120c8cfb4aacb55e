import type { Schema } from '../../admin/api.ts';

export interface ChangedField {
  readonly name: string;
  /** Undefined for a field that says more about the change, and was not there before. */
  readonly before: unknown;
  readonly after: unknown;
}

/** Fields of an account that a change leaves as they are are not listed, nor the many of one that was created. */
const ofCreation = ['name', 'email', 'balance', 'free_requests', 'requests_per_minute'];

/** Returns what an event of the audit log has changed. */
export function listChanges({
  action,
  before,
  after,
}: Pick<Schema<'AdminAuditEvent'>, 'action' | 'before' | 'after'>): readonly ChangedField[] {
  const old = (before ?? {}) as Readonly<Record<string, unknown>>;
  return Object.entries(after ?? {})
    .filter(([name, value]) => JSON.stringify(old[name]) !== JSON.stringify(value))
    .filter(([name, value]) => action !== 'account.create' || (ofCreation.includes(name) && value !== null))
    .map(([name, value]) => ({ name, before: old[name], after: value as unknown }));
}
