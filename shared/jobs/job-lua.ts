import { maxInlineBytes } from '../queue/payload-limits.ts';
import { jobLifetimeMs } from './job-record.ts';

/** Number of failed jobs per account whose bodies stay stored for `admin queue retry`. */
const maxFailedBodies = 1_000;

/**
 * Failure codes that a retry does not fix: the same request would be rejected again, or its caller no longer wants it.
 */
export const finalFailures: readonly string[] = [
  'account_banned',
  'content_too_long',
  'context_length_exceeded',
  'deadline_exceeded',
  'unsafe_url',
  'validation_failed',
];

/** Approximate Redis memory for a job, excluding its body and webhook URL. */
const recordBytes = 1_500;

/** How long a record outlives its list entries. */
const recordSlackSeconds = 600;

/** Lua: the clock behind all times of durable jobs, and number formatting without loss of digits. */
export const clockFunctions = `
local function nowMs()
  local time = redis.call('TIME')
  return tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
end

local function whole(number) return string.format('%.0f', number) end
`;

/**
 * Lua shared by the scripts of durable jobs. `p` is the prefix of all keys of a shard. An account's script touches only
 * keys of the account's shard and builds their names from `p` and the ids that it finds.
 *
 * A job's record is a hash. Besides fields with full names it has: `st` status (first letter), `n` number of the
 * attempt, `w` the worker that has the job, `at` admission time, `dl` deadline, `op` operation, `q` queue, `m` model,
 * `cx` cancellation requested, `x` the attempts whose workers died (`<1><2>`), `pg` progress, `pos` reported position,
 * `fm` format, `wh` state of the webhook, and `rt` the id of its retry. `hold` is the reservation without the account,
 * as `cost free admittedAt <maxCharge claim`; `was` is the same after a failure. In an account, `mqj` is the maximum
 * number of queued jobs and `wgt` the weight.
 */
export const jobFunctions = `${clockFunctions}

local function changeStatus(p, account, id, record, from, to, at, now)
  if from ~= to then
    redis.call('ZREM', p .. 'jobs:' .. account .. ':' .. from, id)
    redis.call('ZADD', p .. 'jobs:' .. account .. ':' .. to, at, id)
  end
  local log = redis.call('HGET', record, 'log')
  redis.call('HSET', record, 'st', to, 'log', log .. ' ' .. to .. whole(now))
end

-- Adds a job to its waiting list, at its old position if it waited before.
local function addToWaitingList(p, account, id, queue, model, at)
  if redis.call('ZADD', p .. 'jobs-waiting:' .. account .. ':' .. queue .. ':' .. model, at, id) == 0 then return end
  redis.call('SADD', p .. 'job-lines', account .. ' ' .. queue .. ' ' .. model)
  redis.call('HINCRBY', p .. 'job-totals', queue, 1)
end

-- Requeues a job that its worker has lost or handed back, at its old position and until its deadline.
local function requeue(p, account, id, now)
  local record = p .. 'job:' .. account .. ':' .. id
  local member = account .. ' ' .. id
  local r = redis.call('HMGET', record, 'st', 'at', 'q', 'm', 'dl')
  if r[1] == 'a' then changeStatus(p, account, id, record, 'a', 'q', r[2], now) end
  redis.call('HDEL', record, 'w')
  redis.call('ZREM', p .. 'job-leases', member)
  redis.call('ZADD', p .. 'job-deadlines', r[5], member)
  addToWaitingList(p, account, id, r[3], r[4], r[2])
  return redis.call('HGET', p .. 'account:' .. account, 'wgt') or '1'
end

local function removeFromWaitingList(p, account, id, queue, model)
  local waiting = p .. 'jobs-waiting:' .. account .. ':' .. queue .. ':' .. model
  if redis.call('ZREM', waiting, id) == 0 then return end
  redis.call('HINCRBY', p .. 'job-totals', queue, -1)
  if redis.call('EXISTS', waiting) == 0 then
    redis.call('SREM', p .. 'job-lines', account .. ' ' .. queue .. ' ' .. model)
  end
end

-- Adds bytes (negative to subtract) to two counters of the Redis memory that jobs use: the account's and the shard's.
local function changeBytes(p, account, by)
  if by == 0 then return end
  redis.call('HINCRBY', p .. 'jobs-held:' .. account, 'bytes', by)
  redis.call('HINCRBY', p .. 'job-totals', 'bytes', by)
end

-- The measured size of a record and its list entries.
local function recordBytes(url) return ${recordBytes} + #url end

local function dropBody(p, account, id)
  local record = p .. 'job:' .. account .. ':' .. id
  changeBytes(p, account, -tonumber(redis.call('HGET', record, 'bytes') or '0'))
  redis.call('HSET', record, 'bytes', 0)
  redis.call('UNLINK', p .. 'job-body:' .. account .. ':' .. id)
end

-- The claim of the job's Idempotency-Key; nil if there is none or it belongs to another request.
local function claimOf(p, account, id, hold)
  local claimHash = string.match(hold, '^%d+ %d %d+ <%d+ (%S+)')
  local claim = claimHash and p .. 'claim:' .. account .. ':' .. claimHash
  if claim and redis.call('HGET', claim, 'id') == id then return claim end
end

-- Must be the first write of a script that ends a job, because it needs no memory. When Redis is out of memory, it
-- rejects scripts whose first write needs some, and jobs that cannot end would never free theirs.
local function dropLease(p, account, id)
  redis.call('ZREM', p .. 'job-leases', account .. ' ' .. id)
end

-- Call after dropLease. Removes the job from every list of unfinished jobs and adds it to those of ended jobs.
local function endJob(p, account, id, to, now, code, message, cost, free)
  local record = p .. 'job:' .. account .. ':' .. id
  local r = redis.call('HMGET', record, 'st', 'at', 'q', 'm', 'url', 'bytes', 'hold')
  local hold = r[7]
  local member = account .. ' ' .. id
  removeFromWaitingList(p, account, id, r[3], r[4])
  redis.call('ZREM', p .. 'job-deadlines', member)
  changeStatus(p, account, id, record, r[1], to, r[2], now)
  redis.call('HSET', record, 'cost', cost, 'free', free)
  if code ~= '' then redis.call('HSET', record, 'code', code, 'msg', message) end
  local keepsBody = to == 'f' and not string.find(' ${finalFailures.join(' ')} ', ' ' .. code .. ' ', 1, true)
    and tonumber(r[6] or '0') <= ${maxInlineBytes}
    and redis.call('ZCARD', p .. 'jobs:' .. account .. ':f') <= ${maxFailedBodies}
  if to == 'f' then redis.call('ZADD', p .. 'job-failures:' .. r[3], now, member) end
  -- If an operator retries the job, the same amount is reserved again.
  if keepsBody and hold then redis.call('HSET', record, 'was', hold) end
  redis.call('HDEL', record, 'hold', 'w')
  if keepsBody then redis.call('EXPIRE', p .. 'job-body:' .. account .. ':' .. id, ${jobLifetimeMs / 1_000})
  else dropBody(p, account, id) end
  redis.call('ZADD', p .. 'jobs-ended', now + ${jobLifetimeMs}, member)
  redis.call('EXPIRE', record, ${jobLifetimeMs / 1_000 + recordSlackSeconds})
  if r[5] then redis.call('ZADD', p .. 'job-hooks', now, member) end
end

-- Whether this attempt still owns the job. A worker that loses a job or hands it back is removed from its record.
local function isHeldBy(record, attempt)
  local r = redis.call('HMGET', record, 'st', 'n', 'w')
  return r[2] == attempt and r[3] and (r[1] == 'q' or r[1] == 'a')
end

-- The attempt's lease expired, so its worker is considered dead. Returns how many workers have died with the job.
local function recordDeath(record, attempt)
  local deaths = (redis.call('HGET', record, 'x') or '') .. '<' .. attempt .. '>'
  redis.call('HSET', record, 'x', deaths)
  local _, count = string.gsub(deaths, '<', '')
  return count
end

-- The attempt's worker is alive, so an expired lease was not a death.
local function undoDeath(record, attempt)
  local deaths = redis.call('HGET', record, 'x')
  if deaths then redis.call('HSET', record, 'x', (string.gsub(deaths, '<' .. attempt .. '>', ''))) end
end

-- Adds one job's reservation to the total of the account's jobs, or subtracts it.
local function changeReserved(p, account, cost, isFree, sign)
  local held = p .. 'jobs-held:' .. account
  if isFree == '1' then redis.call('HINCRBY', held, 'free', sign)
  elseif cost ~= '0' then redis.call('HINCRBY', held, 'cost', sign < 0 and '-' .. cost or cost) end
end

-- Releases the job's reservation: no model will be called for it any more.
local function releaseReservation(p, account, id)
  local hold = redis.call('HGET', p .. 'job:' .. account .. ':' .. id, 'hold')
  if not hold then return end
  local cost, isFree = string.match(hold, '^(%d+) (%d)')
  changeReserved(p, account, cost, isFree, -1)
  local hot = p .. 'account:' .. account
  if redis.call('EXISTS', hot) == 1 then
    if isFree == '1' then redis.call('HINCRBY', hot, 'fres', -1)
    elseif cost ~= '0' then redis.call('HINCRBY', hot, 'res', '-' .. cost) end
  end
  local claim = claimOf(p, account, id, hold)
  if claim then redis.call('DEL', claim) end
end

local function endWithoutCharge(p, account, id, to, now, code, message)
  dropLease(p, account, id)
  releaseReservation(p, account, id)
  endJob(p, account, id, to, now, code, message, '0', 0)
end
`;
