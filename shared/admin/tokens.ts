import { AppError } from '../contract/errors.ts';
import type { AdminDeps } from './admin-deps.ts';
import { adminTokenName } from './admin-scope.ts';
import { AdminTokenStore, type AdminTokenDocument, type NewAdminToken } from './admin-token-store.ts';
import type { AuditTrail } from './audit-trail.ts';

type Deps = Pick<AdminDeps, 'mongo' | 'redis' | 'config'>;

/** A token as shown in lists, without its secret. */
const describeToken = ({ _id, scope, createdAt, revokedAt }: AdminTokenDocument) => ({
  id: _id,
  name: _id,
  scope,
  created_at: createdAt.toISOString() as string | null,
  revoked_at: revokedAt?.toISOString() ?? null,
});
export type DescribedToken = ReturnType<typeof describeToken>;

const openTokens = ({ mongo, redis }: Deps): AdminTokenStore => new AdminTokenStore(mongo.db, redis);

/**
 * Creates a token.
 * @param timedOut aborted if the secret can no longer be delivered; the token is then deleted, and its name is free
 * @returns it, with its secret, which is returned only here
 */
export async function createToken(
  deps: Deps,
  trail: AuditTrail,
  token: NewAdminToken,
  timedOut?: AbortSignal,
): Promise<DescribedToken & { readonly token: string }> {
  const created = await trail.run(
    { action: 'token.create', id: token.name },
    () => openTokens(deps).create(token),
    () => ({ scope: token.scope }),
    { timedOut, undo: (made) => openTokens(deps).deleteUnused(made.token) },
  );
  return { ...describeToken(created.token), token: created.secret };
}

/** Lists the token of the environment, if there is one, and all others, newest first. */
export async function listTokens(deps: Deps): Promise<DescribedToken[]> {
  const named = (await openTokens(deps).list()).map(describeToken);
  if (deps.config.adminToken === null) return named;
  const ofEnvironment = { id: adminTokenName, name: adminTokenName, scope: 'all' as const };
  return [{ ...ofEnvironment, created_at: null, revoked_at: null }, ...named];
}

/**
 * Finds a token that can be revoked. @returns null if there is none
 * @throws AppError `validation_failed` for the token of the environment
 */
export async function findToken(deps: Deps, name: string): Promise<AdminTokenDocument | null> {
  if (name === adminTokenName)
    throw new AppError('validation_failed', {
      message:
        'ADMIN_TOKEN is set in the environment. To revoke it, change it there and restart the api processes.',
    });
  return await openTokens(deps).find(name);
}

/**
 * Revokes a token, which ends within a second, with its sessions.
 * @returns null if there is no such token
 * @throws AppError `validation_failed` for the token of the environment
 */
export async function revokeToken(
  deps: Deps,
  trail: AuditTrail,
  name: string,
): Promise<DescribedToken | null> {
  const found = await findToken(deps, name);
  if (found === null) return null;
  const revoked = await trail.run(
    { action: 'token.revoke', id: name, before: { scope: found.scope, revoked: found.revokedAt !== null } },
    () => openTokens(deps).revoke(name),
    () => ({ revoked: true }),
  );
  return describeToken(revoked ?? found);
}
