import { LuaScript } from '../platform/redis/lua-script.ts';
import type { RedisClient } from '../platform/redis/redis-client.ts';
import { redisKeys } from '../platform/redis/redis-keys.ts';
import type { AccountRejection } from './account-rejection.ts';
import { readRateLimit, type LimitedReply, type RateLimit } from './rate-window.ts';
import {
  parseTokens,
  readRestrictions,
  type RestrictionReply,
  type RestrictionState,
} from './restrictions.ts';

const script = new LuaScript(new URL('./pre-admit.lua', import.meta.url), [
  'account',
  'window',
  'claim',
  'keyHash',
  'slots',
  'address',
  'checksTokens',
]);

/** What the script replies: see its header. */
type PreAdmissionReply =
  | LimitedReply<
      'ok',
      [spendable: string, freeRequests: number, isReplay: 0 | 1, slotsTaken: number, ...RestrictionReply]
    >
  | LimitedReply<'rate_limited', [retryAfterMs: number]>
  | LimitedReply<'tokens_limited', [tokens: string]>
  | [outcome: 'expired', atMs: string]
  | [outcome: 'unknown' | 'revoked' | 'banned' | 'address_refused'];

export interface PreAdmissionRequest {
  readonly accountId: string;
  /** Null for a caller whose session was checked. */
  readonly keyHash: string | null;
  /** RPM slots to take: those of the model if it is already known, 0 for a check that takes none. */
  readonly slots: number;
  /** Hash of the Idempotency-Key; null if the caller sent none. */
  readonly claimHash: string | null;
  /** The caller's address, as `writeAddress` writes it. Not checked if absent. */
  readonly address?: string;
  /** Whether the request counts towards the tokens per minute. True if absent. */
  readonly checksTokens?: boolean;
}

/** The result of pre-admission, before the request is read and tokenized. */
export interface PreAdmission extends RestrictionState {
  readonly rateLimit: RateLimit;
  /** RPM slots already taken. Admission takes only the slots beyond these. */
  readonly slotsTaken: number;
  /** The part of the balance that no request has reserved. Budgets may leave less. */
  readonly spendableNano: bigint;
  readonly freeRequests: number;
  /** The Idempotency-Key belongs to an earlier request, so this one is not charged. */
  readonly isReplay: boolean;
}

export type PreAdmissionResult = ({ readonly outcome: 'ok' } & PreAdmission) | AccountRejection;

export async function runPreAdmission(
  redis: RedisClient,
  { accountId, keyHash, slots, claimHash, address = '', checksTokens = true }: PreAdmissionRequest,
): Promise<PreAdmissionResult> {
  const account = redisKeys.account(accountId);
  const reply = (await script.run(redis, {
    account,
    window: redisKeys.rpmWindow(accountId),
    claim: claimHash === null ? account : redisKeys.claim(accountId, claimHash),
    keyHash: keyHash ?? '',
    slots,
    address,
    checksTokens: checksTokens ? 1 : 0,
  })) as PreAdmissionReply;
  switch (reply[0]) {
    case 'ok': {
      const [outcome, , , , spendable, freeRequests, isReplay, slotsTaken, ...restrictions] = reply;
      return {
        outcome,
        rateLimit: readRateLimit(reply),
        ...readRestrictions(restrictions),
        spendableNano: BigInt(spendable),
        freeRequests,
        isReplay: isReplay === 1,
        slotsTaken,
      };
    }
    case 'rate_limited':
      return { outcome: reply[0], rateLimit: readRateLimit(reply), retryAfterMs: reply[4] };
    case 'tokens_limited':
      return { outcome: reply[0], rateLimit: readRateLimit(reply), tokens: parseTokens(reply[4])! };
    case 'expired':
      return { outcome: reply[0], expiredAt: new Date(Number(reply[1])) };
    case 'unknown':
    case 'revoked':
    case 'banned':
    case 'address_refused':
      return { outcome: reply[0] };
    default:
      return reply satisfies never;
  }
}
