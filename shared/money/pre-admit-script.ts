import { LuaScript } from '../platform/redis/lua-script.ts';
import type { RedisClient } from '../platform/redis/redis-client.ts';
import { redisKeys } from '../platform/redis/redis-keys.ts';
import type { AccountRejection } from './account-rejection.ts';
import { readRateLimit, type LimitedReply, type RateLimit } from './rate-window.ts';

const script = new LuaScript(new URL('./pre-admit.lua', import.meta.url), [
  'account',
  'window',
  'claim',
  'keyHash',
  'slots',
]);

/** What the script replies: see its header. */
type PreAdmissionReply =
  | LimitedReply<'ok', [spendable: string, freeRequests: number, isReplay: 0 | 1, slotsTaken: number]>
  | LimitedReply<'rate_limited', [retryAfterMs: number]>
  | [outcome: 'unknown' | 'revoked' | 'banned'];

export interface PreAdmissionRequest {
  readonly accountId: string;
  readonly keyHash: string;
  /** RPM slots to take: those of the model if it is already known, 0 for a check that takes none. */
  readonly slots: number;
  /** Hash of the Idempotency-Key; null if the caller sent none. */
  readonly claimHash: string | null;
}

/** The result of pre-admission, before the request is read and tokenized. */
export interface PreAdmission {
  readonly rateLimit: RateLimit;
  /** RPM slots already taken. Admission takes only the slots beyond these. */
  readonly slotsTaken: number;
  /** The part of the balance that no request has reserved. */
  readonly spendableNano: bigint;
  readonly freeRequests: number;
  /** The Idempotency-Key belongs to an earlier request, so this one is not charged. */
  readonly isReplay: boolean;
}

export type PreAdmissionResult = ({ readonly outcome: 'ok' } & PreAdmission) | AccountRejection;

export async function runPreAdmission(
  redis: RedisClient,
  { accountId, keyHash, slots, claimHash }: PreAdmissionRequest,
): Promise<PreAdmissionResult> {
  const account = redisKeys.account(accountId);
  const reply = (await script.run(redis, {
    account,
    window: redisKeys.rpmWindow(accountId),
    claim: claimHash === null ? account : redisKeys.claim(accountId, claimHash),
    keyHash,
    slots,
  })) as PreAdmissionReply;
  switch (reply[0]) {
    case 'ok': {
      const [outcome, , , , spendable, freeRequests, isReplay, slotsTaken] = reply;
      return {
        outcome,
        rateLimit: readRateLimit(reply),
        spendableNano: BigInt(spendable),
        freeRequests,
        isReplay: isReplay === 1,
        slotsTaken,
      };
    }
    case 'rate_limited':
      return { outcome: reply[0], rateLimit: readRateLimit(reply), retryAfterMs: reply[4] };
    case 'unknown':
    case 'revoked':
    case 'banned':
      return { outcome: reply[0] };
    default:
      return reply satisfies never;
  }
}
