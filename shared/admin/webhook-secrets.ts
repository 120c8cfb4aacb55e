import { AppError } from '../contract/errors.ts';
import { WebhookSecretStore } from '../work/webhook-secret-store.ts';
import type { AdminDeps } from './admin-deps.ts';
import type { AuditTrail } from './audit-trail.ts';
import { toDryRun } from './dry-run.ts';

type Deps = Pick<AdminDeps, 'mongo' | 'config'>;

const action = 'account.webhook-secret';
const storeOf = ({ mongo, config }: Deps): WebhookSecretStore => new WebhookSecretStore(mongo.db, config);

/**
 * Returns the secret that signs the webhooks of an account, created on first use. That it was shown is recorded.
 * @throws AppError `validation_failed` if it was stored under another master key
 */
export async function showWebhookSecret(deps: Deps, trail: AuditTrail, accountId: string): Promise<string> {
  const secrets = storeOf(deps);
  const isNew = !(await secrets.has(accountId));
  return await trail.run(
    { action, id: accountId },
    async () => {
      const secret = await secrets.getOrCreate(accountId);
      if (secret !== null) return secret;
      throw new AppError('validation_failed', {
        message:
          'The webhook secret of this account was stored with a different MASTER_KEY. Restore the previous MASTER_KEY, or replace the secret.',
      });
    },
    () => (isNew ? { created: true, shown: true } : { shown: true }),
  );
}

/**
 * Replaces the secret. Both sign for 24 hours. A caller that does not get the new one can have it shown, so nothing is
 * undone.
 */
export async function rotateWebhookSecret(deps: Deps, trail: AuditTrail, accountId: string): Promise<string> {
  return await trail.run(
    { action, id: accountId },
    () => storeOf(deps).rotate(accountId),
    () => ({ rotated: true }),
  );
}

/** What a rotation would end. */
export async function dryRunRotateWebhookSecret(deps: Deps, accountId: string) {
  const previousUntil = await storeOf(deps).findEndOfPrevious(accountId);
  return toDryRun({ previous_until: previousUntil?.toISOString() ?? null });
}
