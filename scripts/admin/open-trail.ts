import { userInfo } from 'node:os';
import { commandName } from '../../shared/admin/admin-scope.ts';
import { AuditLogStore } from '../../shared/admin/audit-log-store.ts';
import { AuditTrail, isClientError } from '../../shared/admin/audit-trail.ts';
import type { MongoConnection } from '../../shared/platform/storage/mongo-client.ts';
import { CommandError, UsageError } from './command.ts';

/**
 * Opens the audit log for the changes of a command, which are those of the user of the operating system.
 * @param reason why they are made; null if nothing was given
 */
export const openTrail = (
  { mongo }: { readonly mongo: MongoConnection },
  warn: (text: string) => void,
  reason: string | null,
): AuditTrail =>
  new AuditTrail({
    store: new AuditLogStore(mongo.db),
    actor: { token: commandName, osUser: findUserName(), requestId: null, address: null },
    reason,
    isRejection: (error) =>
      isClientError(error) || error instanceof CommandError || error instanceof UsageError,
    onUnrecorded: () =>
      warn('The command succeeded, but the audit log may continue to show it as started. Do not repeat it.'),
  });

/** A container may have no entry for its user. */
function findUserName(): string {
  try {
    return userInfo().username;
  } catch {
    return `uid ${process.getuid?.() ?? 'unknown'}`;
  }
}
