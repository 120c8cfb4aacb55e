import { ReplyError } from 'ioredis';
import { RedisScript, type RedisClient } from '../redis/redis-client.ts';
import { redisKeys, shardOf } from '../redis/redis-keys.ts';
import type { ErrorCode } from '../contract/error-kinds.ts';
import type { UsageEvent } from '../ledger/usage-event.ts';
import { jobFunctions } from '../jobs/job-lua.ts';
import { claimLifetimeSeconds } from '../billing/idempotency-claim.ts';
import { maxReservationMultiple } from '../billing/reservation-store.ts';

/**
 * Settles a request: ends its reservation, debits the exact cost and appends the usage event. The reservation makes
 * this idempotent: the first settlement removes it, and without a reservation nothing happens. A cost above the
 * reservation is debited only from money that no other request has reserved, and only up to the maximum in the
 * reservation. The remaining cost is the shortfall.
 *
 * If the reservation was released as an orphan although its process was alive, the request is settled late, from the
 * balance that is available now. With an Idempotency-Key, the claim was deleted together with the reservation. The
 * request is then settled late only if the caller has not sent it again: the caller is charged for only one of the two.
 * A late success gets its claim back, so that later retries find the response.
 *
 * A failure deletes the claim of its Idempotency-Key, because failures are not replayed. A success keeps it.
 *
 * A durable job has its reservation in its own record and ends in the same step. Only the attempt that currently owns
 * the job may end it; an attempt that was presumed lost changes nothing.
 *
 * One script execution settles all requests that a process has to settle on one shard in one event loop turn. They are
 * settled separately and in order, and a failure in one does not affect the others.
 *
 * `p`, the prefix of the shard's keys, is defined only if at least one request is a durable job. A job's record has its
 * status in `st` (`q` queued, `a` active), the number of its current attempt in `n`, and its reservation in `hold`.
 */
const settleLua = `
local reservations, stream, orphans = KEYS[1], KEYS[2], KEYS[3]

local function settle(account, minutes, claim, id, exactCost, refundsFreeRequest, event, keepsClaim, claimSeconds, job)
  local held, late = false, false
  local record = job and p .. 'job:' .. job.account .. ':' .. id
  if job then
    local state = redis.call('HMGET', record, 'st', 'n', 'hold')
    if state[2] ~= job.attempt or (state[1] ~= 'q' and state[1] ~= 'a') or not state[3] then return {'absent'} end
    held = job.account .. ' ' .. state[3]
  else
    held = redis.call('HGET', reservations, id)
  end
  if not held then
    if event == '' then return {'absent'} end
    held = redis.call('HGET', orphans, id)
    if not held then return {'absent'} end
    late = true
  end
  local accountId, reserved, isFree, details = string.match(held, '^(%S+) (%d+) (%d) %d+ ?([^|]*)')
  local maxCharge, claims = string.match(details, '^<(%d+) ?(.*)$')
  -- Reservations of earlier versions have no maximum.
  if not maxCharge then maxCharge, claims = tonumber(reserved) * ${maxReservationMultiple}, details end
  local claimHash, claimBody = string.match(claims, '^(%S*) ?(.*)$')
  local isClaimedLate = late and claimHash ~= ''
  if isClaimedLate and (not claim or claimBody == '' or redis.call('EXISTS', claim) == 1) then return {'absent'} end

  local amounts = redis.call('HMGET', account, 'bal', 'res', 'free', 'fres', 'charges')
  if not amounts[1] and event ~= '' then return {'unknown'} end
  if job then dropLease(p, job.account, id) else redis.call('HDEL', late and orphans or reservations, id) end
  if isClaimedLate then redis.call('HSET', claim, 'body', claimBody, 'id', id) end
  if claim and redis.call('HGET', claim, 'id') == id then
    if keepsClaim == '1' then redis.call('EXPIRE', claim, claimSeconds) else redis.call('DEL', claim) end
  end
  if job then changeReserved(p, job.account, reserved, isFree, -1) end
  if not amounts[1] then
    if job then endJob(p, job.account, id, job.to, nowMs(), job.code, job.message, '0', 0) end
    return {'settled', '0', '0'}
  end

  local balance, allReserved = tonumber(amounts[1]), tonumber(amounts[2])
  local free, freeHeld = tonumber(amounts[3]), tonumber(amounts[4])
  reserved = tonumber(reserved)
  -- A free request reserved no money, so its cost has no maximum if it must be charged after all.
  local payable = isFree == '1' and exactCost or math.min(exactCost, tonumber(maxCharge))
  if late then
    reserved = 0
    if isFree == '1' and free <= freeHeld then isFree = '0' end
  elseif isFree == '1' then
    freeHeld = freeHeld - 1
  else
    allReserved = allReserved - reserved
  end
  local cost, shortfall = 0, 0
  if isFree == '1' then
    if refundsFreeRequest == '1' then isFree = '0' else free = free - 1 end
  else
    cost = payable
    if cost > reserved then
      cost = math.min(cost, math.max(reserved, balance - allReserved))
    end
    shortfall = exactCost - cost
    balance = balance - cost
  end
  local costText = string.format('%.0f', cost)
  if job then endJob(p, job.account, id, job.to, nowMs(), job.code, job.message, costText, isFree) end
  if event == '' then
    redis.call('HSET', account, 'res', string.format('%.0f', allReserved), 'fres', freeHeld)
    return {'settled', costText, isFree}
  end
  local ordinal = tonumber(amounts[5] or '0') + 1
  redis.call('HSET', account, 'bal', string.format('%.0f', balance), 'res', string.format('%.0f', allReserved),
    'free', free, 'fres', freeHeld, 'charges', ordinal)
  -- Every entry starts with kind and account: readers find an account's entries by these positions.
  local entry = redis.call('XADD', stream, '*', 'kind', 'charge', 'account', accountId, 'id', id,
    'cost', costText, 'shortfall', string.format('%.0f', shortfall), 'free', isFree, 'ordinal', ordinal, 'event', event)

  local minute = math.floor(tonumber(string.match(entry, '^%d+')) / 60000)
  local slot = minute % 60
  local known = redis.call('HGET', minutes, slot)
  local knownMinute, requests, spent = string.match(known or '', '^(%d+) (%d+) (%d+)')
  if tonumber(knownMinute or '0') == minute then
    redis.call('HSET', minutes, slot, string.format('%d %d %.0f', minute, requests + 1, spent + cost))
  else
    redis.call('HSET', minutes, slot, minute .. ' 1 ' .. costText)
    redis.call('EXPIRE', minutes, 3660)
  end
  return {'settled', costText, isFree}
end

local results = {}
for i = 0, (#KEYS - 3) / 3 - 1 do
  local key, arg = 3 + i * 3, i * 7
  local claimSeconds, job = ARGV[arg + 6], ARGV[arg + 7]
  local done, result = pcall(settle, KEYS[key + 1], KEYS[key + 2], claimSeconds ~= '' and KEYS[key + 3] or nil,
    ARGV[arg + 1], tonumber(ARGV[arg + 2]), ARGV[arg + 3], ARGV[arg + 4], ARGV[arg + 5], claimSeconds,
    job ~= '' and cjson.decode(job))
  if not done then result = {'error', type(result) == 'table' and result.err or result} end
  results[i + 1] = result
end
return results
`;

/**
 * Redis recreates the functions of a script each time it runs. The functions for durable jobs make a settlement take an
 * eighth longer, so they are included only if there is a durable job to settle.
 */
const script = new RedisScript(settleLua);
const scriptWithJobs = new RedisScript(`${jobFunctions}
local p = string.match(KEYS[1], '^(.*)reservations$')
${settleLua}`);

export interface Settlement {
  /**
   * `absent`: the reservation had already ended, and nothing was charged by this call. `unknown`: the account is not in
   * Redis, and nothing was changed.
   */
  readonly outcome: 'settled' | 'absent' | 'unknown';
  readonly costNano: bigint;
  /** Whether it was paid for with a free request. */
  readonly free: boolean;
}

export interface SettlementRequest {
  readonly accountId: string;
  readonly requestId: string;
  /** Hash of the Idempotency-Key that the request was claimed under, if any. */
  readonly claimHash: string | null;
  /** The attempt that ends the request, if it is a durable job. */
  readonly jobAttempt?: number | undefined;
}

/** Why the request failed; null on success. */
export type SettledError = { readonly code: ErrorCode; readonly message: string } | null;

export interface SettlementDetails {
  /** Hash of the Idempotency-Key that the request was claimed under, if any. */
  readonly claimHash?: string | null;
  /** For a durable job: the attempt that ends it, and why it failed. */
  readonly jobAttempt?: number | undefined;
  readonly error?: SettledError;
}

/** @param costNano the exact cost; null if nothing is charged, which also returns a reserved free request */
export async function runSettlement(
  redis: RedisClient,
  event: UsageEvent,
  costNano: bigint | null,
  { claimHash = null, jobAttempt, error = null }: SettlementDetails = {},
): Promise<Settlement> {
  const { accountId, requestId, success: keepsClaim } = event;
  const request = { accountId, requestId, claimHash, jobAttempt };
  const requestEnd = { costNano: costNano ?? 0n, refundsFreeRequest: costNano === null, keepsClaim, error };
  return await settle(redis, request, { ...requestEnd, event: JSON.stringify(event) });
}

/** Ends the reservation of a request that called no model. Nothing is charged and no row is logged. */
export async function releaseReservation(
  redis: RedisClient,
  request: SettlementRequest,
  error: SettledError = null,
): Promise<Settlement> {
  return await settle(redis, request, {
    costNano: 0n,
    refundsFreeRequest: true,
    keepsClaim: false,
    event: '',
    error,
  });
}

/** How a request ends. */
interface RequestEnd {
  readonly costNano: bigint;
  readonly refundsFreeRequest: boolean;
  readonly keepsClaim: boolean;
  /** The usage event as JSON; empty if nothing is to be logged. */
  readonly event: string;
  /** For a durable job: why it failed. */
  readonly error: SettledError;
}

interface PendingSettlement {
  readonly request: SettlementRequest;
  readonly requestEnd: RequestEnd;
  readonly resolve: (settlement: Settlement) => void;
  readonly reject: (error: unknown) => void;
}

/** Maximum settlements per script execution. A script blocks all other clients of Redis, so it must be short. */
const maxPerScript = 64;

/** Settlements waiting for the end of this event loop turn, by connection and shard. */
const pendingOf = new WeakMap<RedisClient, Map<number, PendingSettlement[]>>();

async function settle(
  redis: RedisClient,
  request: SettlementRequest,
  requestEnd: RequestEnd,
): Promise<Settlement> {
  if (requestEnd.costNano < 0n)
    throw new RangeError(`a request cannot cost ${requestEnd.costNano} nano-roubles`);
  const shard = shardOf(request.accountId);
  let byShard = pendingOf.get(redis);
  if (byShard === undefined) {
    byShard = new Map();
    pendingOf.set(redis, byShard);
  }
  const pending = byShard.get(shard) ?? [];
  if (pending.length === 0) {
    byShard.set(shard, pending);
    setImmediate(() => {
      byShard.delete(shard);
      for (let at = 0; at < pending.length; at += maxPerScript) {
        const batch = pending.slice(at, at + maxPerScript);
        settleBatch(redis, shard, batch).catch((error: unknown) => {
          // Some of them may have been settled before the failure. Settling those again changes nothing.
          for (const { reject } of batch) reject(error);
        });
      }
    });
  }
  return await new Promise((resolve, reject) => {
    pending.push({ request, requestEnd, resolve, reject });
  });
}

/** Describes how a durable job ends; empty for any other request. */
function describeJob({ accountId, jobAttempt }: SettlementRequest, { error }: RequestEnd): string {
  if (jobAttempt === undefined) return '';
  const to = error === null ? 's' : error.code === 'job_cancelled' ? 'c' : 'f';
  const { code, message } = error ?? { code: '', message: '' };
  return JSON.stringify({ account: accountId, attempt: String(jobAttempt), to, code, message });
}

/** Settles these requests in one script execution, and resolves or rejects each of them. */
async function settleBatch(
  redis: RedisClient,
  shard: number,
  batch: readonly PendingSettlement[],
): Promise<void> {
  const reservations = redisKeys.reservations(shard);
  const keys = [reservations, redisKeys.ledgerStream(shard), redisKeys.orphans(shard)];
  const args: (string | number)[] = [];
  for (const { request, requestEnd } of batch) {
    const { accountId, requestId, claimHash } = request;
    keys.push(
      redisKeys.account(accountId),
      redisKeys.recentMinutes(accountId),
      // Without a claim, another key of the same shard is passed and ignored.
      claimHash === null ? reservations : redisKeys.claim(accountId, claimHash),
    );
    args.push(
      requestId,
      requestEnd.costNano.toString(),
      requestEnd.refundsFreeRequest ? 1 : 0,
      requestEnd.event,
      requestEnd.keepsClaim ? 1 : 0,
      claimHash === null ? '' : claimLifetimeSeconds,
      describeJob(request, requestEnd),
    );
  }
  const hasJobs = batch.some(({ request }) => request.jobAttempt !== undefined);
  const results = (await (hasJobs ? scriptWithJobs : script).run(redis, keys, args)) as [
    Settlement['outcome'] | 'error',
    string?,
    string?,
  ][];
  for (const [i, { resolve, reject }] of batch.entries()) {
    const [outcome, cost, free] = results[i]!;
    if (outcome === 'error') {
      reject(new ReplyError(cost ?? 'the settlement failed'));
      continue;
    }
    resolve({ outcome, costNano: BigInt(cost ?? '0'), free: free === '1' });
  }
}
