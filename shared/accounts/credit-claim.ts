import type { HotAccountStore } from '../billing/hot-account-store.ts';
import { runRefill } from '../billing/refill-script.ts';
import { AppError } from '../contract/errors.ts';
import { createRefillEvent } from '../ledger/usage-event.ts';
import { callRedis, type RedisClient } from '../redis/redis-client.ts';
import type { Claim, RefillCodeStore } from './refill-code-store.ts';
import { isRefillWithdrawn, withdrawRefill } from './withdrawal-store.ts';

export interface ClaimDependencies {
  readonly redis: RedisClient;
  readonly hotAccounts: HotAccountStore;
  readonly codes: RefillCodeStore;
}

/** `before`: an earlier call did it, or someone else who finishes the same claim. `released`: the balance cannot hold it. */
export type CreditOutcome = 'now' | 'before' | 'released';

/**
 * Credits what a claimed code is worth, once, however often it is called. Where the balance cannot hold it, the code
 * becomes unused again.
 */
export async function creditClaim(
  { redis, hotAccounts, codes }: ClaimDependencies,
  claim: Claim,
): Promise<CreditOutcome> {
  const { accountId, refillId, amountNano, freeRequests, code, at, source } = claim;
  // Only an account that Redis holds can be credited.
  await hotAccounts.get(accountId);
  const event = {
    ...createRefillEvent(refillId, accountId, source, source === 'code' ? code : null),
    at: at.getTime(),
  };
  let isCredited: boolean;
  try {
    if (await callRedis(() => runRefill(redis, { amountNano, freeRequests, event }))) return 'now';
    isCredited = !(await isRefillWithdrawn(redis, accountId, refillId));
  } catch (error) {
    if (!(error instanceof AppError) || error.code !== 'validation_failed') throw error;
    // Another who credits the same claim may have found room since: only what can no longer be credited is released.
    isCredited = !(await withdrawRefill(redis, accountId, refillId));
  }
  if (isCredited) return 'before';
  await codes.releaseClaim(claim);
  return 'released';
}
