import { AppError } from '../../shared/contract/errors.ts';
import type { LedgerStore } from '../../shared/ledger/ledger-store.ts';
import { isAfter } from '../../shared/ledger/usage-event.ts';
import type { Logger } from '../../shared/platform/runtime/logger.ts';
import { callMongo } from '../../shared/platform/storage/mongo-client.ts';
import { creditClaim, type ClaimDeps } from '../../shared/accounts/credit-claim.ts';
import type { RedemptionClaim } from '../../shared/accounts/refill-code-store.ts';

export interface FinishClaimsDeps extends ClaimDeps {
  readonly ledger: LedgerStore;
  readonly log: Logger;
}

/** A newer claim may belong to a request in flight, or its ledger entry may not have reached MongoDB yet. */
const settleAfterMs = 5_000;
/** Maximum per run. The next run handles the others. */
const maxClaims = 1_000;

/**
 * Finishes pending redemption claims. Settles claims whose ledger entry is in MongoDB. Retries the credit of the
 * others, which is idempotent by refill id; a later run settles them. Therefore no refill is lost if a process crashes
 * between claim and credit, or if Redis loses its data. Safe to run in any process, at any time, and concurrently.
 * @returns how many claims were settled
 * @throws AppError `service_unavailable`
 */
export async function finishClaims(deps: FinishClaimsDeps): Promise<number> {
  const { codes, ledger, log } = deps;
  const claims = await codes.findClaims(new Date(Date.now() - settleAfterMs), maxClaims);
  let settled = 0;
  for (const claim of claims) {
    try {
      if (!(await isInMongo(ledger, claim))) await creditClaim(deps, claim);
      else if (await codes.settleClaim(claim)) settled += 1;
    } catch (error) {
      if (error instanceof AppError && error.code === 'service_unavailable') throw error;
      // A claim that cannot be finished must not block the others.
      log.error({ refillId: claim.refillId, err: error }, 'crediting a redeemed code failed');
    }
  }
  return settled;
}

/** Whether MongoDB's ledger contains the refill's entry and the account's sums include it. */
async function isInMongo(ledger: LedgerStore, { accountId, refillId }: RedemptionClaim): Promise<boolean> {
  return await callMongo(async () => {
    const entry = await ledger.entries.findOne({ _id: refillId });
    if (entry === null) return false;
    const applied = (await ledger.findAppliedPositions([accountId])).get(accountId);
    return applied !== undefined && !isAfter({ ms: entry.streamMs, seq: entry.streamSeq }, applied);
  });
}
