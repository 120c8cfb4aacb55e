import type { AuditLogStore } from '../../shared/admin/audit-log-store.ts';
import { AuditTrail } from '../../shared/admin/audit-trail.ts';

/** An audit trail without a database. @returns it and what it wrote */
export function createTrail() {
  const written: { outcome?: string; before?: object; after?: object }[] = [];
  const write = async (event: object): Promise<string> => {
    written.push(event);
    return 'an id';
  };
  const store = { start: write, finish: (_: string, end: object) => write(end) } as unknown as AuditLogStore;
  const actor = { token: 'support', osUser: null, requestId: 'a request', address: '192.0.2.1' };
  const trail = new AuditTrail({ store, actor, reason: null, onUnrecorded: () => undefined });
  return { trail, written };
}
