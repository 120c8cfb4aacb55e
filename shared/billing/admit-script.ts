import { RedisScript, type RedisClient } from '../redis/redis-client.ts';
import { redisKeys, shardOf } from '../redis/redis-keys.ts';
import { claimLifetimeSeconds, type Claim } from './claim.ts';

/**
 * Admission, in one trip and all at once: not banned, the key still the account's own, no earlier request under the
 * same Idempotency-Key, slots of the sliding minute, then a free request or a reservation of the most that the request
 * can cost.
 *
 * The window holds one-second buckets in a list (`second:slots`); the account's field `win` is their sum, so that a
 * request costs the same however many came before it. Requests that are refused for money took their slots: a
 * caller without money is limited like any other.
 */
const script = new RedisScript(`
local account, window, reservations, stream, claim = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local id, keyHash, slots = ARGV[1], ARGV[2], tonumber(ARGV[3])
local fixed, unit, wanted, least = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7])
local share, freeAllowed, streamBound, accountId = tonumber(ARGV[8]), ARGV[9], tonumber(ARGV[10]), ARGV[11]

local a = redis.call('HMGET', account, 'bal', 'res', 'free', 'fres', 'rpm', 'ban', 'key', 'win')
if not a[1] then return {'unknown'} end
if a[6] == '1' then return {'banned'} end
if a[7] ~= keyHash then return {'revoked'} end
if claim then
  local known = redis.call('HMGET', claim, 'body', 'id')
  if known[1] == ARGV[12] then return {'attached', known[2]} end
  if known[1] then return {'conflict'} end
end
if redis.call('XLEN', stream) >= streamBound then return {'ledger_full'} end

local time = redis.call('TIME')
local now = tonumber(time[1])
local nowMs = string.format('%.0f', now * 1000 + math.floor(tonumber(time[2]) / 1000))
local limit, used = tonumber(a[5]), tonumber(a[8] or '0')
if slots > limit then slots = limit end

local head = redis.call('LINDEX', window, 0)
if not head then used = 0 end
while head do
  local second, count = string.match(head, '(%d+):(%d+)')
  if tonumber(second) > now - 60 then break end
  redis.call('LPOP', window)
  used = used - tonumber(count)
  head = redis.call('LINDEX', window, 0)
end

if used + slots > limit then
  redis.call('HSET', account, 'win', used)
  local missing, wait, reset = used + slots - limit, 1, 1
  for _, bucket in ipairs(redis.call('LRANGE', window, 0, -1)) do
    local second, count = string.match(bucket, '(%d+):(%d+)')
    reset = tonumber(second) + 60 - now
    if missing > 0 then wait = reset end
    missing = missing - tonumber(count)
  end
  return {'rate_limited', limit, limit - used, reset, wait}
end
local tail = redis.call('LINDEX', window, -1)
local tailSecond, tailCount = string.match(tail or '', '(%d+):(%d+)')
if tailSecond and tonumber(tailSecond) >= now then
  redis.call('LSET', window, -1, tailSecond .. ':' .. string.format('%d', tonumber(tailCount) + slots))
else
  redis.call('RPUSH', window, string.format('%d:%d', now, slots))
  redis.call('EXPIRE', window, 61)
end
used = used + slots

local free, freeHeld = tonumber(a[3]), tonumber(a[4])
local units, cost, isFree = wanted, 0, '0'
if freeAllowed == '1' and free > freeHeld then
  isFree = '1'
  redis.call('HSET', account, 'win', used, 'last', nowMs, 'fres', freeHeld + 1)
else
  local reserved = tonumber(a[2])
  local spendable = tonumber(a[1]) - reserved
  cost = fixed + unit * units
  local budget = spendable
  if share < 1000 then budget = math.floor(spendable / 1000) * share end
  if cost > budget and unit > 0 then
    units = math.min(wanted, math.floor((budget - fixed) / unit))
    if units < least then units = math.min(wanted, least) end
    cost = fixed + unit * units
  end
  if cost > spendable then
    redis.call('HSET', account, 'win', used)
    return {'insufficient', limit, limit - used, 60, string.format('%.0f', cost), string.format('%.0f', spendable)}
  end
  redis.call('HSET', account, 'win', used, 'last', nowMs, 'res', string.format('%.0f', reserved + cost))
end
cost = string.format('%.0f', cost)
local reservation = accountId .. ' ' .. cost .. ' ' .. isFree .. ' ' .. nowMs
if claim then
  reservation = reservation .. ' ' .. ARGV[13]
  redis.call('HSET', claim, 'body', ARGV[12], 'id', id)
  redis.call('EXPIRE', claim, ARGV[14])
end
redis.call('HSET', reservations, id, reservation)
return {'ok', limit, limit - used, 60, cost, isFree, units}
`);

/** Entries that may wait for MongoDB in one shard's stream before new work is refused: about 1 GB over all shards. */
const ledgerStreamBound = 100_000;

export interface AdmissionRequest {
  readonly requestId: string;
  readonly accountId: string;
  readonly keyHash: string;
  /** RPM slots of the model. */
  readonly slots: number;
  readonly fixedNano: bigint;
  readonly nanoPerUnit: bigint;
  /** Completion tokens that are asked for: the account may get fewer, but not fewer than `leastUnits`. */
  readonly wantedUnits: number;
  readonly leastUnits: number;
  /** The share of the spendable balance, in thousandths, that this request may reserve before units are cut. */
  readonly sharePermille: number;
  readonly freeAllowed: boolean;
  /** What the caller's Idempotency-Key stands for; null where it sent none. */
  readonly claim: Claim | null;
}

export interface RateLimit {
  readonly limit: number;
  readonly remaining: number;
  readonly resetSeconds: number;
}

export interface Admission {
  readonly rateLimit: RateLimit;
  readonly reservedNano: bigint;
  readonly free: boolean;
  readonly units: number;
}

export type AdmissionAnswer =
  | ({ readonly outcome: 'ok' } & Admission)
  | { readonly outcome: 'unknown' | 'revoked' | 'banned' | 'ledger_full' | 'conflict' }
  /** An earlier request has the same Idempotency-Key and body: its answer is this one's. */
  | { readonly outcome: 'attached'; readonly requestId: string }
  | { readonly outcome: 'rate_limited'; readonly rateLimit: RateLimit; readonly retryAfterSeconds: number }
  | {
      readonly outcome: 'insufficient';
      readonly rateLimit: RateLimit;
      readonly neededNano: bigint;
      readonly spendableNano: bigint;
    };

export async function runAdmission(redis: RedisClient, request: AdmissionRequest): Promise<AdmissionAnswer> {
  const { accountId, claim } = request;
  const shard = shardOf(accountId);
  const answer = (await script.run(
    redis,
    [
      redisKeys.account(accountId),
      redisKeys.rpmWindow(accountId),
      redisKeys.reservations(shard),
      redisKeys.ledgerStream(shard),
      ...(claim === null ? [] : [redisKeys.claim(accountId, claim.keyHash)]),
    ],
    [
      request.requestId,
      request.keyHash,
      request.slots,
      request.fixedNano.toString(),
      request.nanoPerUnit.toString(),
      request.wantedUnits,
      request.leastUnits,
      request.sharePermille,
      request.freeAllowed ? 1 : 0,
      ledgerStreamBound,
      accountId,
      ...(claim === null ? [] : [claim.bodyHash, claim.keyHash, claimLifetimeSeconds]),
    ],
  )) as [AdmissionAnswer['outcome'], ...unknown[]];
  const [outcome, limit, remaining, resetSeconds, ...rest] = answer;
  const rateLimit = {
    limit: Number(limit),
    remaining: Number(remaining),
    resetSeconds: Number(resetSeconds),
  };
  switch (outcome) {
    case 'ok':
      return {
        outcome,
        rateLimit,
        reservedNano: BigInt(String(rest[0])),
        free: rest[1] === '1',
        units: Number(rest[2]),
      };
    case 'attached':
      return { outcome, requestId: String(limit) };
    case 'rate_limited':
      return { outcome, rateLimit, retryAfterSeconds: Number(rest[0]) };
    case 'insufficient':
      return {
        outcome,
        rateLimit,
        neededNano: BigInt(String(rest[0])),
        spendableNano: BigInt(String(rest[1])),
      };
    case 'unknown':
    case 'revoked':
    case 'banned':
    case 'ledger_full':
    case 'conflict':
      return { outcome };
    default:
      return outcome satisfies never;
  }
}
