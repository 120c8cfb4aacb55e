import { maxInlineBytes } from '../queue/payload-limits.ts';
import { jobLifetimeMs } from './job-record.ts';

/** Number of failed jobs per account whose bodies are kept for `admin queue retry`. */
const keptFailedBodies = 1_000;

/**
 * Failure codes that a retry does not fix: the same request would be refused again, or its caller no longer wants it.
 */
export const finalFailures: readonly string[] = [
  'account_banned',
  'content_too_long',
  'deadline_exceeded',
  'unsafe_url',
  'validation_failed',
];

/** Approximate Redis memory for a job, excluding its body and webhook URL. */
const recordBytes = 1_500;

/** A record may be read slightly longer than its lists point to it. */
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
 * Lua shared by the scripts of durable jobs. `p` is the prefix of all keys of a shard. A script of an account touches
 * only keys of its shard and builds their names from `p` and the ids that it finds.
 *
 * A record's `hold` is its reservation without the account: `cost free admittedAt <most claim`.
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

-- A job begins to wait, or waits again at its old place.
local function enterWaiting(p, account, id, queue, model, at)
  if redis.call('ZADD', p .. 'jobs-waiting:' .. account .. ':' .. queue .. ':' .. model, at, id) == 0 then return end
  redis.call('SADD', p .. 'job-lines', account .. ' ' .. queue .. ' ' .. model)
  redis.call('HINCRBY', p .. 'job-totals', queue, 1)
end

-- Its worker does not have it any more: it waits again, at its old place and until its deadline.
local function waitAgain(p, account, id, now)
  local record = p .. 'job:' .. account .. ':' .. id
  local member = account .. ' ' .. id
  local r = redis.call('HMGET', record, 'st', 'at', 'q', 'm', 'dl')
  if r[1] == 'a' then changeStatus(p, account, id, record, 'a', 'q', r[2], now) end
  redis.call('HDEL', record, 'w')
  redis.call('ZREM', p .. 'job-leases', member)
  redis.call('ZADD', p .. 'job-deadlines', r[5], member)
  enterWaiting(p, account, id, r[3], r[4], r[2])
  return redis.call('HGET', p .. 'account:' .. account, 'wgt') or '1'
end

local function leaveWaiting(p, account, id, queue, model)
  local waiting = p .. 'jobs-waiting:' .. account .. ':' .. queue .. ':' .. model
  if redis.call('ZREM', waiting, id) == 0 then return end
  redis.call('HINCRBY', p .. 'job-totals', queue, -1)
  if redis.call('EXISTS', waiting) == 0 then
    redis.call('SREM', p .. 'job-lines', account .. ' ' .. queue .. ' ' .. model)
  end
end

-- What jobs take of Redis, of the account and of the shard.
local function changeBytes(p, account, by)
  if by == 0 then return end
  redis.call('HINCRBY', p .. 'jobs-held:' .. account, 'bytes', by)
  redis.call('HINCRBY', p .. 'job-totals', 'bytes', by)
end

-- Of a record and its places in lists, as measured.
local function recordBytes(url) return ${recordBytes} + #url end

local function dropBody(p, account, id)
  local record = p .. 'job:' .. account .. ':' .. id
  changeBytes(p, account, -tonumber(redis.call('HGET', record, 'bytes') or '0'))
  redis.call('HSET', record, 'bytes', 0)
  redis.call('UNLINK', p .. 'job-body:' .. account .. ':' .. id)
end

-- The claim of the Idempotency-Key that stands for the job; nil where there is none, or it stands for another request.
local function claimOf(p, account, id, hold)
  local claimHash = string.match(hold, '^%d+ %d %d+ <%d+ (%S+)')
  local claim = claimHash and p .. 'claim:' .. account .. ':' .. claimHash
  if claim and redis.call('HGET', claim, 'id') == id then return claim end
end

-- The first write of a script that ends a job. It takes no memory: when Redis has none left, it refuses scripts whose first
-- write does, and jobs that cannot end would never give theirs back.
local function beginToEnd(p, account, id)
  redis.call('ZREM', p .. 'job-leases', account .. ' ' .. id)
end

-- The job is over: it leaves every list but those of what has ended, after beginToEnd.
local function endJob(p, account, id, to, now, code, message, cost, free)
  local record = p .. 'job:' .. account .. ':' .. id
  local r = redis.call('HMGET', record, 'st', 'at', 'q', 'm', 'url', 'bytes', 'hold')
  local hold = r[7]
  local member = account .. ' ' .. id
  leaveWaiting(p, account, id, r[3], r[4])
  redis.call('ZREM', p .. 'job-deadlines', member)
  changeStatus(p, account, id, record, r[1], to, r[2], now)
  redis.call('HSET', record, 'cost', cost, 'free', free)
  if code ~= '' then redis.call('HSET', record, 'code', code, 'msg', message) end
  local keeps = to == 'f' and not string.find(' ${finalFailures.join(' ')} ', ' ' .. code .. ' ', 1, true)
    and tonumber(r[6] or '0') <= ${maxInlineBytes}
    and redis.call('ZCARD', p .. 'jobs:' .. account .. ':f') <= ${keptFailedBodies}
  if to == 'f' then redis.call('ZADD', p .. 'job-failures:' .. r[3], now, member) end
  -- What it reserved is reserved again where an operator has it retried.
  if keeps and hold then redis.call('HSET', record, 'was', hold) end
  redis.call('HDEL', record, 'hold', 'w')
  if keeps then redis.call('EXPIRE', p .. 'job-body:' .. account .. ':' .. id, ${jobLifetimeMs / 1_000})
  else dropBody(p, account, id) end
  redis.call('ZADD', p .. 'jobs-ended', now + ${jobLifetimeMs}, member)
  redis.call('EXPIRE', record, ${jobLifetimeMs / 1_000 + recordSlackSeconds})
  if r[5] then redis.call('ZADD', p .. 'job-hooks', now, member) end
end

-- Whether this attempt has the job: a worker that lost it, or gave it back, is named no more.
local function isHeldBy(record, attempt)
  local r = redis.call('HMGET', record, 'st', 'n', 'w')
  return r[2] == attempt and r[3] and (r[1] == 'q' or r[1] == 'a')
end

-- The attempt's lease ran out: its worker is taken for dead. Answers with how many deaths there were under the job.
local function noteDeath(record, attempt)
  local deaths = (redis.call('HGET', record, 'x') or '') .. '<' .. attempt .. '>'
  redis.call('HSET', record, 'x', deaths)
  local _, count = string.gsub(deaths, '<', '')
  return count
end

-- The attempt's worker lives: if its lease ran out, that was no death.
local function takeDeathBack(record, attempt)
  local deaths = redis.call('HGET', record, 'x')
  if deaths then redis.call('HSET', record, 'x', (string.gsub(deaths, '<' .. attempt .. '>', ''))) end
end

-- What the account's jobs hold together changes by one job's hold.
local function changeHeld(p, account, cost, isFree, sign)
  local held = p .. 'jobs-held:' .. account
  if isFree == '1' then redis.call('HINCRBY', held, 'free', sign)
  elseif cost ~= '0' then redis.call('HINCRBY', held, 'cost', sign < 0 and '-' .. cost or cost) end
end

-- Gives back what the job reserved: no model is asked for it any more.
local function releaseHold(p, account, id)
  local hold = redis.call('HGET', p .. 'job:' .. account .. ':' .. id, 'hold')
  if not hold then return end
  local cost, isFree = string.match(hold, '^(%d+) (%d)')
  changeHeld(p, account, cost, isFree, -1)
  local hot = p .. 'account:' .. account
  if redis.call('EXISTS', hot) == 1 then
    if isFree == '1' then redis.call('HINCRBY', hot, 'fres', -1)
    elseif cost ~= '0' then redis.call('HINCRBY', hot, 'res', '-' .. cost) end
  end
  local claim = claimOf(p, account, id, hold)
  if claim then redis.call('DEL', claim) end
end

local function endWithoutCharge(p, account, id, to, now, code, message)
  beginToEnd(p, account, id)
  releaseHold(p, account, id)
  endJob(p, account, id, to, now, code, message, '0', 0)
end
`;
