import { RedisScript, type RedisClient } from '../redis/redis-client.ts';
import { redisKeys } from '../redis/redis-keys.ts';
import type { AccountRefusal } from './account-refusal.ts';
import { rateWindowLua, readRateLimit, type RateLimit } from './rate-window.ts';

/**
 * Pre-admits a request in one round trip, before its body is read and tokenized. It checks that the account is not
 * banned and that the key still belongs to it, and takes RPM slots of the sliding minute. If no slots are requested, it
 * takes none but checks that one is available. Returns the spendable balance; whether that is enough is known only once
 * the request is tokenized.
 */
const script = new RedisScript(`
local account, window, claim = KEYS[1], KEYS[2], KEYS[3]
local slots = tonumber(ARGV[2])
local fields = redis.call('HMGET', account, 'bal', 'res', 'free', 'fres', 'rpm', 'ban', 'key', 'win')
if not fields[1] then return {'unknown'} end
if fields[6] == '1' then return {'banned'} end
if fields[7] ~= ARGV[1] then return {'revoked'} end
${rateWindowLua}
local limit = tonumber(fields[5])
local needed = math.max(1, math.min(slots, limit))
local used, refusal = takeSlots(window, tonumber(fields[8] or '0'), limit, needed, slots == 0)
redis.call('HSET', account, 'win', used)
if refusal then return refusal end
local isReplay = claim and redis.call('EXISTS', claim) or 0
local spendable = string.format('%.0f', tonumber(fields[1]) - tonumber(fields[2]))
return {'ok', limit, limit - used, 60, spendable, tonumber(fields[3]) - tonumber(fields[4]), isReplay, slots == 0 and 0 or needed}
`);

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

export type PreAdmissionResult = ({ readonly outcome: 'ok' } & PreAdmission) | AccountRefusal;

export async function runPreAdmission(
  redis: RedisClient,
  { accountId, keyHash, slots, claimHash }: PreAdmissionRequest,
): Promise<PreAdmissionResult> {
  const keys = [redisKeys.account(accountId), redisKeys.rpmWindow(accountId)];
  if (claimHash !== null) keys.push(redisKeys.claim(accountId, claimHash));
  const reply = (await script.run(redis, keys, [keyHash, slots])) as [
    PreAdmissionResult['outcome'],
    ...unknown[],
  ];
  const [outcome, limit, remaining, resetSeconds, ...values] = reply;
  const rateLimit = readRateLimit([limit, remaining, resetSeconds]);
  switch (outcome) {
    case 'ok':
      return {
        outcome,
        rateLimit,
        spendableNano: BigInt(String(values[0])),
        freeRequests: Number(values[1]),
        isReplay: values[2] === 1,
        slotsTaken: Number(values[3]),
      };
    case 'rate_limited':
      return { outcome, rateLimit, retryAfterMs: Number(values[0]) };
    case 'unknown':
    case 'revoked':
    case 'banned':
      return { outcome };
    default:
      return outcome satisfies never;
  }
}
