import type { HotAccountStore } from './hot-account-store.ts';
import { runRefill } from './refill-script.ts';
import { AppError } from '../contract/errors.ts';
import { createRefillEvent } from '../ledger/usage-event.ts';
import { callRedis, type RedisClient } from '../platform/redis/redis-client.ts';
import type { RedemptionClaim, RefillCodeStore } from './refill-code-store.ts';
import { isRefillVoided, voidRefill } from './void-refill-store.ts';

export interface ClaimDeps {
  readonly redis: RedisClient;
  readonly hotAccounts: HotAccountStore;
  readonly codes: RefillCodeStore;
}

/**
 * `now`: credited by this call. `before`: already credited, by an earlier call or another process. `released`: not
 * credited, because it would exceed the balance cap.
 */
export type CreditOutcome = 'now' | 'before' | 'released';

/**
 * Credits the value of a claimed code. Idempotent. If it would exceed the balance cap, the code becomes unused again.
 */
export async function creditClaim(
  { redis, hotAccounts, codes }: ClaimDeps,
  claim: RedemptionClaim,
): Promise<CreditOutcome> {
  const { accountId, refillId, amountNano, freeRequests, code, at, source } = claim;
  // Only an account loaded in Redis can be credited.
  await hotAccounts.get(accountId);
  const event = {
    ...createRefillEvent(refillId, accountId, source, source === 'code' ? code : null),
    at: at.getTime(),
  };
  let isCredited: boolean;
  try {
    const creditedNano = await callRedis(() => runRefill(redis, { amountNano, freeRequests, event }));
    if (creditedNano !== null) return 'now';
    isCredited = !(await isRefillVoided(redis, accountId, refillId));
  } catch (error) {
    if (!(error instanceof AppError) || error.code !== 'validation_failed') throw error;
    // A concurrent call may have credited the same claim when the balance allowed it. Release it only once it can no
    // longer be credited.
    isCredited = !(await voidRefill(redis, accountId, refillId));
  }
  if (isCredited) return 'before';
  await codes.releaseClaim(claim);
  return 'released';
}
