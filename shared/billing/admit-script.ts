import { RedisScript, type RedisClient } from '../redis/redis-client.ts';
import { redisKeys, shardOf } from '../redis/redis-keys.ts';
import { pushFunction, type TicketedPush } from '../redis/ticketed-list.ts';
import { claimLifetimeSeconds, type IdempotencyClaim } from './idempotency-claim.ts';
import { storedBytesFunctions, maxStoredBytesPerAccount } from './stored-bytes.ts';
import type { AccountRefusal } from './account-refusal.ts';
import { maxReservationMultiple } from './reservation-store.ts';
import { rateWindowLua, readRateLimit, type RateLimit } from './rate-window.ts';

/**
 * Admits a request, atomically and in one round trip. It checks that the account is not banned, that the key still
 * belongs to it, that enough RPM slots are left in the sliding minute and that no earlier request used the same
 * Idempotency-Key. Then it takes a free request or reserves the maximum cost of the request.
 *
 * Requests rejected for insufficient balance still use up their RPM slots, and so do replays and conflicts of an
 * Idempotency-Key: the rate limit also applies to a caller that has no balance or only replays a stored response.
 *
 * If the request comes with an item for a queue and gets all units that it asked for, the item is pushed in the same
 * step. Requests whose response is stored have no such item.
 */
const script = new RedisScript(`${storedBytesFunctions}${pushFunction}
local account, window, reservations, stream = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local item = ARGV[13] or ''
local storedBytes = item == '' and KEYS[5] or nil
-- An idempotency claim, or the mark of a resumable stream, or both.
local claim = storedBytes and ARGV[14] ~= '' and KEYS[6] or nil
local resumable = storedBytes and ARGV[18] ~= '' and KEYS[#KEYS] or nil
local id, keyHash, slots = ARGV[1], ARGV[2], tonumber(ARGV[3])
local fixed, unit, requested, minUnits = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7])
local share, freeAllowed, streamBound, accountId = tonumber(ARGV[8]), ARGV[9], tonumber(ARGV[10]), ARGV[11]
local slotsTaken = tonumber(ARGV[12])

local fields = redis.call('HMGET', account, 'bal', 'res', 'free', 'fres', 'rpm', 'ban', 'key', 'win')
if not fields[1] then return {'unknown'} end
if fields[6] == '1' then return {'banned'} end
if fields[7] ~= keyHash then return {'revoked'} end
local known = claim and redis.call('HMGET', claim, 'body', 'id')
local isKnown = known and known[1]
if not isKnown and redis.call('XLEN', stream) >= streamBound then return {'ledger_full'} end
${rateWindowLua}
local limit = tonumber(fields[5])
slots = math.max(1, math.min(slots, limit)) - slotsTaken
local used, refusal = takeSlots(window, tonumber(fields[8] or '0'), limit, slots)
if refusal or isKnown then redis.call('HSET', account, 'win', used) end
if refusal then return refusal end
if isKnown then
  if known[1] ~= ARGV[14] then return {'conflict', limit, limit - used, 60} end
  return {'attached', limit, limit - used, 60, known[2]}
end

if (claim or resumable) and storedBytesExceed(storedBytes, tonumber(ARGV[17])) then
  redis.call('HSET', account, 'win', used)
  return {'stored_too_much', limit, limit - used, 60}
end

local free, freeHeld = tonumber(fields[3]), tonumber(fields[4])
local units, cost, maxCharge, isFree = requested, 0, 0, '0'
if freeAllowed == '1' and free > freeHeld then
  isFree = '1'
  redis.call('HSET', account, 'win', used, 'last', nowMs, 'fres', freeHeld + 1)
else
  local reserved = tonumber(fields[2])
  local spendable = tonumber(fields[1]) - reserved
  cost = fixed + unit * units
  local budget = spendable
  if share < 1000 then budget = math.floor(spendable / 1000) * share end
  if cost > budget and unit > 0 then
    units = math.min(requested, math.floor((budget - fixed) / unit))
    if units < minUnits then units = math.min(requested, minUnits) end
    cost = fixed + unit * units
  end
  if cost > spendable then
    redis.call('HSET', account, 'win', used)
    return {'insufficient', limit, limit - used, 60, string.format('%.0f', cost), string.format('%.0f', spendable)}
  end
  redis.call('HSET', account, 'win', used, 'last', nowMs, 'res', string.format('%.0f', reserved + cost))
  -- The multiple is a margin for vendors that report more than our estimate. If the balance determines the number of
  -- units, that number is a limit and not an estimate, so the units get no margin.
  maxCharge = cost * ${maxReservationMultiple}
  if share < 1000 then maxCharge = maxCharge - unit * units * ${maxReservationMultiple - 1} end
end
cost = string.format('%.0f', cost)
local reservation = accountId .. ' ' .. cost .. ' ' .. isFree .. ' ' .. nowMs .. string.format(' <%.0f', maxCharge)
if claim then
  reservation = reservation .. ' ' .. ARGV[15]
  redis.call('HSET', claim, 'body', ARGV[14], 'id', id)
  redis.call('EXPIRE', claim, ARGV[16])
end
if resumable then redis.call('SET', resumable, 1, 'EX', ARGV[18]) end
redis.call('HSET', reservations, id, reservation)
local ticket = 0
if item ~= '' and units == requested then ticket = push(KEYS[5], KEYS[6], ARGV[14], item) end
return {'ok', limit, limit - used, 60, cost, isFree, units, ticket}
`);

/**
 * Maximum number of entries that wait for MongoDB in one shard's stream. Above this, new requests are rejected. The
 * entries of all shards then take about 1 GB.
 */
export const ledgerStreamBound = 100_000;

export interface AdmissionRequest {
  readonly requestId: string;
  readonly accountId: string;
  readonly keyHash: string;
  /** RPM slots that a request to the model uses. */
  readonly slots: number;
  /** Slots that pre-admission has already taken for this request. */
  readonly slotsTaken: number;
  readonly fixedNano: bigint;
  readonly nanoPerUnit: bigint;
  /** Completion tokens requested. The account may get fewer, but never fewer than `minUnits`. */
  readonly requestedUnits: number;
  readonly minUnits: number;
  /** The part of the spendable balance, in thousandths, that this request may reserve before its units are reduced. */
  readonly sharePermille: number;
  readonly freeAllowed: boolean;
  /** The idempotency claim; null if the caller sent no Idempotency-Key. */
  readonly claim: IdempotencyClaim | null;
  /** Whether the response is a stream that continues without its reader. */
  readonly isResumable: boolean;
}

export interface Admission {
  readonly rateLimit: RateLimit;
  readonly reservedNano: bigint;
  readonly free: boolean;
  readonly units: number;
  /** The ticket of the item that was pushed in the same step; null if none was. */
  readonly ticket: number | null;
}

export type AdmissionResult =
  | ({ readonly outcome: 'ok' } & Admission)
  | AccountRefusal
  | { readonly outcome: 'ledger_full' }
  | { readonly outcome: 'conflict'; readonly rateLimit: RateLimit }
  /** An earlier request had the same Idempotency-Key and body. This one gets its response. */
  | { readonly outcome: 'attached'; readonly rateLimit: RateLimit; readonly requestId: string }
  /** The account has too many stored responses to admit another request whose response would be stored. */
  | { readonly outcome: 'stored_too_much'; readonly rateLimit: RateLimit }
  | {
      readonly outcome: 'insufficient';
      readonly rateLimit: RateLimit;
      readonly neededNano: bigint;
      readonly spendableNano: bigint;
    };

/**
 * @param push done in the same step, if the request is admitted with all units that it asked for and the list is not
 * full. Not for requests whose response is stored, and not in a Cluster, where the list is on another node.
 */
export async function runAdmission(
  redis: RedisClient,
  request: AdmissionRequest,
  push: TicketedPush | null = null,
): Promise<AdmissionResult> {
  const { accountId, claim, isResumable } = request;
  const shard = shardOf(accountId);
  const isStored = claim !== null || isResumable;
  if (isStored && push !== null) throw new TypeError('a request with a stored response is pushed separately');
  const reply = (await script.run(
    redis,
    [
      redisKeys.account(accountId),
      redisKeys.rpmWindow(accountId),
      redisKeys.reservations(shard),
      redisKeys.ledgerStream(shard),
      ...(push?.keys ?? []),
      ...(isStored ? [redisKeys.storedBytes(accountId)] : []),
      ...(claim === null ? [] : [redisKeys.claim(accountId, claim.keyHash)]),
      ...(isResumable ? [redisKeys.resumableStream(accountId, request.requestId)] : []),
    ],
    [
      request.requestId,
      request.keyHash,
      request.slots,
      request.fixedNano.toString(),
      request.nanoPerUnit.toString(),
      request.requestedUnits,
      request.minUnits,
      request.sharePermille,
      request.freeAllowed ? 1 : 0,
      ledgerStreamBound,
      accountId,
      request.slotsTaken,
      push?.item ?? '',
      ...(push === null ? [] : [push.bound]),
      ...(isStored
        ? [
            claim?.bodyHash ?? '',
            claim?.keyHash ?? '',
            claimLifetimeSeconds,
            maxStoredBytesPerAccount,
            isResumable ? claimLifetimeSeconds : '',
          ]
        : []),
    ],
  )) as [AdmissionResult['outcome'], ...unknown[]];
  const [outcome, limit, remaining, resetSeconds, ...values] = reply;
  const rateLimit = readRateLimit([limit, remaining, resetSeconds]);
  switch (outcome) {
    case 'ok':
      return {
        outcome,
        rateLimit,
        reservedNano: BigInt(String(values[0])),
        free: values[1] === '1',
        units: Number(values[2]),
        ticket: Number(values[3]) || null,
      };
    case 'attached':
      return { outcome, rateLimit, requestId: String(values[0]) };
    case 'rate_limited':
      return { outcome, rateLimit, retryAfterMs: Number(values[0]) };
    case 'insufficient':
      return {
        outcome,
        rateLimit,
        neededNano: BigInt(String(values[0])),
        spendableNano: BigInt(String(values[1])),
      };
    case 'stored_too_much':
      return { outcome, rateLimit };
    case 'unknown':
    case 'revoked':
    case 'banned':
    case 'ledger_full':
      return { outcome };
    case 'conflict':
      return { outcome, rateLimit };
    default:
      return outcome satisfies never;
  }
}
