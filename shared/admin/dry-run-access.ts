import type { WebUser } from '../account-area/web-models.ts';
import type { RefillCodeDocument } from '../accounts/refill-code-store.ts';
import { statusOfRefillCode } from '../accounts/refill-code-store.ts';
import { toRubNumber } from '../encoding/money.ts';
import type { AdminDeps } from './admin-deps.ts';
import { AdminSessionStore } from './admin-session-store.ts';
import type { AdminTokenDocument } from './admin-token-store.ts';
import { AuditLogStore } from './audit-log-store.ts';
import { toDryRun } from './dry-run.ts';

/** What a ban of a user would end, and what stays. */
export async function dryRunBanUser({ web }: Pick<AdminDeps, 'web'>, { _id: id }: Pick<WebUser, '_id'>) {
  const [sessions, links] = await Promise.all([web.sessions.list(id), web.links.list(id)]);
  return toDryRun({ sessions: sessions.length, accounts: links.length });
}

export async function dryRunEndSessions({ web }: Pick<AdminDeps, 'web'>, { _id: id }: Pick<WebUser, '_id'>) {
  return toDryRun({ sessions: (await web.sessions.list(id)).length });
}

/** Which sessions end with a token, and when it was last used for a change. */
export async function dryRunRevokeToken(
  { redis, mongo }: Pick<AdminDeps, 'redis' | 'mongo'>,
  { _id: name, secretHash, revokedAt }: AdminTokenDocument,
) {
  const [sessions, [last]] = await Promise.all([
    new AdminSessionStore(redis).count(secretHash),
    new AuditLogStore(mongo.db).list({ token: name }, { after: null, limit: 1 }),
  ]);
  return toDryRun({
    is_changed: revokedAt === null,
    sessions: revokedAt === null ? sessions : 0,
    last_changed_at: last?.at.toISOString() ?? null,
  });
}

/** What codes are worth that would be revoked: those that can still be redeemed. */
export function dryRunRevokeCodes(codes: readonly RefillCodeDocument[]) {
  const now = new Date();
  const unused = codes.filter((code) => statusOfRefillCode(code, now) === 'unused');
  return toDryRun({
    codes: unused.length,
    redeemed: codes.filter(({ redeemed }) => redeemed !== null).length,
    balance: toRubNumber(unused.reduce((sum, { balanceNano }) => sum + balanceNano, 0n)),
    free_requests: unused.reduce((sum, { freeRequests }) => sum + freeRequests, 0),
  });
}
