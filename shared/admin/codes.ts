import { randomUUID } from 'node:crypto';
import { CodeBatchStore } from '../accounts/code-batch-store.ts';
import {
  nameCode,
  statusOfRefillCode,
  type CodeFilter,
  type NewRefillCode,
  type RefillCodeDocument,
} from '../accounts/refill-code-store.ts';
import { AppError } from '../contract/errors.ts';
import { maxBalanceNano, toRubNumber } from '../encoding/money.ts';
import type { AdminDeps } from './admin-deps.ts';
import type { AuditTrail } from './audit-trail.ts';
import { dryRunRevokeCodes } from './dry-run-access.ts';
import { deriveId, hashRequest, type OnceForEver } from './once-for-ever.ts';
import { toPage, type Page, type PageRequest } from './page.ts';

type Deps = Pick<AdminDeps, 'codes'>;
type BatchDeps = Pick<AdminDeps, 'codes' | 'mongo' | 'config'>;

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

export interface CreatedCodes {
  /** Names this creation in the audit log, and is in each of its codes. */
  readonly batch: string;
  /** The hashes of the codes, in the same order. */
  readonly ids: readonly string[];
  /** In plain text. Null if an earlier call created them, more than a day ago or with `REVEAL=off`. */
  readonly codes: readonly string[] | null;
  /** Whether an earlier call with the key created them. */
  readonly isReplay: boolean;
}

/** How codes are created once, or undone. */
export interface CreateCodesOptions {
  /** Makes the codes be created once, for ever; null for others with each call. */
  readonly once?: OnceForEver | null;
  /**
   * Aborted if the codes can no longer be delivered. They are then revoked, unless they are created once: a repeated call
   * gets them.
   */
  readonly timedOut?: AbortSignal | undefined;
}

/**
 * Creates refill codes. The audit log has their value and ids, and not the codes, which are money.
 * @param count up to `maxCodesOfBatch`
 * @throws AppError `idempotency_conflict` if the key was used for another request, or its codes were revoked together
 */
export async function createCodes(
  deps: BatchDeps,
  trail: AuditTrail,
  count: number,
  code: NewRefillCode,
  { once = null, timedOut }: CreateCodesOptions = {},
): Promise<CreatedCodes> {
  const { balanceNano, freeRequests, expiresAt } = code;
  if (balanceNano < 0n || balanceNano > maxBalanceNano)
    throw rejected('A code is worth 0 to 9000000 roubles.');
  const id = once === null ? randomUUID() : deriveId('codes', once.key);
  const create = async (): Promise<CreatedCodes> => {
    if (once !== null) return await createOnce(deps, id, { count, code, request: once.request });
    const codes = await deps.codes.create(count, code, id);
    return { batch: id, ids: codes.map((text) => nameCode(text).id), codes, isReplay: false };
  };
  return await trail.run(
    { action: 'code.create', id },
    create,
    ({ ids, codes, isReplay }) =>
      isReplay
        ? { replayed: true, codes_shown: codes !== null }
        : {
            count,
            balance: toRubNumber(balanceNano),
            free_requests: freeRequests,
            expires_at: expiresAt?.toISOString() ?? null,
            codes: ids,
          },
    once === null
      ? {
          timedOut,
          undo: async ({ ids }) => {
            await deps.codes.revokeAll(ids);
          },
        }
      : undefined,
  );
}

async function createOnce(
  { codes, mongo, config }: BatchDeps,
  id: string,
  {
    count,
    code,
    request,
  }: { readonly count: number; readonly code: NewRefillCode; readonly request: object },
): Promise<CreatedCodes> {
  const batches = new CodeBatchStore(mongo.db, config);
  const requestHash = hashRequest(request);
  const earlier = await batches.find(id);
  const created = earlier === null ? await batches.create(id, requestHash, count) : null;
  const batch = earlier ?? created!.batch;
  if (batch.requestHash !== requestHash)
    throw new AppError('idempotency_conflict', {
      message:
        'This Idempotency-Key was already used to create other codes. Repeat the same request, or use a new key.',
    });
  const ids = batch.codes.map((one) => one.id);
  // Those of a call that was interrupted are completed.
  const { createdAt, revokedAt = null } = batch;
  await codes.insertMissing(batch.codes, code, { batch: id, createdAt, revokedAt });
  // Who revokes a batch marks it first, and then revokes the codes that exist. Those that were inserted after that are revoked here.
  if (revokedAt !== null || (await batches.find(id))?.revokedAt !== undefined) {
    await codes.revokeAll(ids);
    throw new AppError('idempotency_conflict', {
      message:
        'The codes that this Idempotency-Key created were revoked. Use a new key to create other codes.',
    });
  }
  const made = created?.codes ?? null;
  return {
    batch: id,
    ids,
    codes: made ?? (await batches.reveal(batch)),
    isReplay: made === null,
  };
}

/** Lists codes, latest first. The id of a code is its hash. */
export async function listCodes(
  { codes }: Deps,
  filter: CodeFilter,
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
    { action: 'code.revoke', id: found._id, before: describeCode(found) },
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

/**
 * Lists the codes that one call created, which are fewer than it was to create if it was interrupted.
 * @returns null if there was no such call
 */
export async function listCodesOfBatch(
  { codes, mongo, config }: BatchDeps,
  batch: string,
): Promise<readonly RefillCodeDocument[] | null> {
  const found = await codes.listBatch(batch);
  const isKnown = found.length > 0 || (await new CodeBatchStore(mongo.db, config).find(batch)) !== null;
  return isKnown ? found : null;
}

/**
 * Revokes the codes that one call created, except those that were redeemed. Those that it did not create yet can never be
 * redeemed.
 * @param found those that exist
 * @returns how many were revoked now
 */
export async function revokeCodesOfBatch(
  { codes, mongo, config }: BatchDeps,
  trail: AuditTrail,
  batch: string,
  found: readonly RefillCodeDocument[],
): Promise<number> {
  return await trail.run(
    { action: 'code.revoke', id: batch, before: dryRunRevokeCodes(found).effects },
    async () => {
      const planned = await new CodeBatchStore(mongo.db, config).revoke(batch);
      const ids = new Set([...found.map(({ _id }) => _id), ...(planned?.codes ?? []).map(({ id }) => id)]);
      return await codes.revokeAll([...ids]);
    },
    (revoked) => ({ codes: revoked }),
  );
}

const rejected = (message: string): AppError => new AppError('validation_failed', { message });
