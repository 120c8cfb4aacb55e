import { AppError } from '../contract/errors.ts';
import type { LedgerStore } from '../ledger/ledger-store.ts';
import { isAfter } from '../ledger/usage-event.ts';
import type { Logger } from '../runtime/logger.ts';
import { callMongo } from '../storage/mongo-client.ts';
import { creditClaim, type ClaimDependencies } from './credit-claim.ts';
import type { Claim } from './refill-code-store.ts';

export interface FinishClaimsDependencies extends ClaimDependencies {
  readonly ledger: LedgerStore;
  readonly log: Logger;
}

/** A younger claim is still in the hands of the request that made it, or its entry is on its way to MongoDB. */
const settleAfterMs = 5_000;
/** In one round; the rest is for the next. */
const maxClaims = 1_000;

/**
 * Finishes what redeeming began: a claim whose money is at rest in MongoDB is settled, any other is credited again,
 * for the next round to settle. So neither a crash between claim and credit nor a Redis that lost its memory loses a
 * refill. Safe to run anywhere, at any time, by several at once.
 * @returns how many claims were settled
 * @throws AppError `service_unavailable`
 */
export async function finishClaims(dependencies: FinishClaimsDependencies): Promise<number> {
  const { codes, ledger, log } = dependencies;
  const claims = await codes.findClaims(new Date(Date.now() - settleAfterMs), maxClaims);
  let settled = 0;
  for (const claim of claims) {
    try {
      if (!(await isAtRest(ledger, claim))) await creditClaim(dependencies, claim);
      else if (await codes.settleClaim(claim)) settled += 1;
    } catch (error) {
      if (error instanceof AppError && error.code === 'service_unavailable') throw error;
      // One claim that cannot be finished must not hold up the others.
      log.error({ refillId: claim.refillId, err: error }, 'a redeemed code could not be credited');
    }
  }
  return settled;
}

/** Whether the ledger holds the refill's entry, and the account's sums hold the entry. */
async function isAtRest(ledger: LedgerStore, { accountId, refillId }: Claim): Promise<boolean> {
  return await callMongo(async () => {
    const entry = await ledger.entries.findOne({ _id: refillId });
    if (entry === null) return false;
    const applied = (await ledger.findAccountsApplied([accountId])).get(accountId);
    return applied !== undefined && !isAfter({ ms: entry.streamMs, seq: entry.streamSeq }, applied);
  });
}
