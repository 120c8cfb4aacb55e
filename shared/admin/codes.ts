import {
  statusOfRefillCode,
  type NewRefillCode,
  type RefillCodeDocument,
} from '../accounts/refill-code-store.ts';
import { AppError } from '../contract/errors.ts';
import { maxBalanceNano, toRubNumber } from '../encoding/money.ts';
import type { AdminDeps } from './admin-deps.ts';
import type { AuditTrail } from './audit-trail.ts';
import { toPage, type Page, type PageRequest } from './page.ts';

type Deps = Pick<AdminDeps, 'codes'>;

export const maxCodes = 10_000;

/** Shows only the end of a code, because only its hash is stored. */
export function describeCode(code: RefillCodeDocument) {
  return {
    code: code.hint,
    balance: toRubNumber(code.balanceNano),
    free_requests: code.freeRequests,
    created_at: code.createdAt.toISOString(),
    expires_at: code.expiresAt?.toISOString() ?? null,
    status: statusOfRefillCode(code, new Date()),
    redeemed_by: code.redeemed?.accountId ?? null,
    redeemed_at: code.redeemed?.at.toISOString() ?? null,
  };
}

/**
 * Creates refill codes. The audit log has their value and number, and not the codes, which are money.
 * @param timedOut aborted if the codes can no longer be delivered; they are then revoked
 * @returns the codes in plain text, which are returned only here
 */
export async function createCodes(
  { codes }: Deps,
  trail: AuditTrail,
  count: number,
  code: NewRefillCode,
  timedOut?: AbortSignal,
): Promise<string[]> {
  const { balanceNano, freeRequests, expiresAt } = code;
  if (balanceNano < 0n || balanceNano > maxBalanceNano)
    throw rejected('A code is worth 0 to 9000000 roubles.');
  const after = {
    count,
    balance: toRubNumber(balanceNano),
    free_requests: freeRequests,
    expires_at: expiresAt?.toISOString() ?? null,
  };
  return await trail.run(
    { action: 'code.create', id: `${count} codes` },
    () => codes.create(count, code),
    () => after,
    { timedOut, undo: (created) => codes.revokeAll(created) },
  );
}

/** Lists codes, newest first. The id of a code is its hash. */
export async function listCodes(
  { codes }: Deps,
  filter: { readonly isUnused: boolean },
  { limit, after }: PageRequest,
): Promise<Page<RefillCodeDocument>> {
  return toPage(await codes.listPage(filter, after, limit + 1), limit, ({ _id }) => _id);
}

/**
 * Invalidates a code that has not been redeemed.
 * @throws AppError `validation_failed` if it was redeemed
 */
export async function revokeCode(
  { codes }: Deps,
  trail: AuditTrail,
  found: RefillCodeDocument,
): Promise<RefillCodeDocument> {
  return await trail.run(
    { action: 'code.revoke', id: found.hint, before: describeCode(found) },
    async () => {
      await codes.revokeById(found._id);
      const code = (await codes.findById(found._id)) ?? found;
      if (code.redeemed === null) return code;
      throw rejected(
        `The code was redeemed by ${code.redeemed.accountId} on ${code.redeemed.at.toISOString()}; it cannot be revoked.`,
      );
    },
    describeCode,
  );
}

const rejected = (message: string): AppError => new AppError('validation_failed', { message });
