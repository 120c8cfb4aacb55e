import { AppError } from '../contract/errors.ts';
import type { LedgerStore } from '../ledger/ledger-store.ts';
import { isAfter } from '../ledger/usage-event.ts';
import type { Logger } from '../runtime/logger.ts';
import { callMongo } from '../storage/mongo-client.ts';
import { creditClaim, type ClaimDeps } from './credit-claim.ts';
import type { RedemptionClaim } from './refill-code-store.ts';

export interface FinishClaimsDeps extends ClaimDeps {
  readonly ledger: LedgerStore;
  readonly log: Logger;
}

/** The request that made a younger claim is still running, or the entry is on its way to MongoDB. */
const settleAfterMs = 5_000;
/** Per round; the rest is left to the next one. */
const maxClaims = 1_000;

/**
 * Finishes pending redemption claims. A claim whose ledger entry is in MongoDB is settled. Any other is credited again
 * and settled in a later round. A crash between claim and credit, or a Redis that lost its memory, therefore loses no
 * refill. Safe to run anywhere, at any time, and concurrently.
 * @returns how many claims were settled
 * @throws AppError `service_unavailable`
 */
export async function finishClaims(dependencies: FinishClaimsDeps): Promise<number> {
  const { codes, ledger, log } = dependencies;
  const claims = await codes.findClaims(new Date(Date.now() - settleAfterMs), maxClaims);
  let settled = 0;
  for (const claim of claims) {
    try {
      if (!(await isAtRest(ledger, claim))) await creditClaim(dependencies, claim);
      else if (await codes.settleClaim(claim)) settled += 1;
    } catch (error) {
      if (error instanceof AppError && error.code === 'service_unavailable') throw error;
      // A claim that cannot be finished must not block the others.
      log.error({ refillId: claim.refillId, err: error }, 'a redeemed code could not be credited');
    }
  }
  return settled;
}

/** Whether the ledger has the refill's entry, and the account's sums include it. */
async function isAtRest(ledger: LedgerStore, { accountId, refillId }: RedemptionClaim): Promise<boolean> {
  return await callMongo(async () => {
    const entry = await ledger.entries.findOne({ _id: refillId });
    if (entry === null) return false;
    const applied = (await ledger.findAccountsApplied([accountId])).get(accountId);
    return applied !== undefined && !isAfter({ ms: entry.streamMs, seq: entry.streamSeq }, applied);
  });
}
