-- Functions for durable jobs. `prefix`, which scripts define before they include this file, is the prefix of all keys
-- of a shard. An account's script touches only keys of the account's shard and builds their names from `prefix` and the
-- ids that it finds.
--
-- A job's record is a hash. Besides fields with full names it has: `st` status (first letter), `n` number of the
-- attempt, `w` the worker that has the job, `at` admission time, `dl` deadline, `op` operation, `q` queue, `m` model,
-- `cx` cancellation requested, `ca` time at which it is cancelled unless it has ended, `cd` how long after its admission
-- that was (ms), `x` the attempts whose workers died (`<1><2>`), `pg` progress, `pos` reported position, `fm` format,
-- `we` events that its webhook is called for (`s` start, `e` end; `e` if absent), `ws` webhook of its start requested,
-- `wh` state of the webhook of its end, `pu` public URL of the gateway, for webhooks, `fd` details of its error as JSON,
-- `rd` its response was deleted, and `rt` the id of its retry. `hold` is the reservation without the account, as
-- `cost free admittedAt <maxCharge claim`; `was` is the same after a failure. In an account, `mqj` is the maximum number
-- of queued jobs and `wgt` the weight.
-- luacheck: read globals emptyRecordBytes finalFailures jobLifetimeMs maxFailedBodies maxInlineBytes recordSlackMs

-- include '../../platform/redis/clock.lua'
-- include '../../platform/redis/whole.lua'
-- include '../../money/budgets.lua'

local function recordOf(accountId, id) return prefix .. 'job:' .. accountId .. ':' .. id end

-- The account's jobs for one model that wait for a worker.
local function waitingOf(accountId, queue, model)
  return prefix .. 'jobs-waiting:' .. accountId .. ':' .. queue .. ':' .. model
end

local function changeStatus(accountId, id, record, from, to, admittedAt)
  if from ~= to then
    redis.call('ZREM', prefix .. 'jobs:' .. accountId .. ':' .. from, id)
    redis.call('ZADD', prefix .. 'jobs:' .. accountId .. ':' .. to, admittedAt, id)
  end
  local log = redis.call('HGET', record, 'log')
  redis.call('HSET', record, 'st', to, 'log', log .. ' ' .. to .. whole(nowMs))
end

-- Adds a job to its waiting list, at its old position if it waited before.
local function addToWaitingList(accountId, id, queue, model, admittedAt)
  if redis.call('ZADD', waitingOf(accountId, queue, model), admittedAt, id) == 0 then return end
  redis.call('SADD', prefix .. 'job-lines', accountId .. ' ' .. queue .. ' ' .. model)
  redis.call('HINCRBY', prefix .. 'job-totals', queue, 1)
end

-- Requeues a job that its worker has lost or handed back, at its old position and until its deadline. Returns the
-- weight of its account.
local function requeue(accountId, id)
  local record, member = recordOf(accountId, id), accountId .. ' ' .. id
  local status, admittedAt, queue, model, deadline =
    unpack(redis.call('HMGET', record, 'st', 'at', 'q', 'm', 'dl'))
  if status == 'a' then changeStatus(accountId, id, record, 'a', 'q', admittedAt) end
  redis.call('HDEL', record, 'w')
  redis.call('ZREM', prefix .. 'job-leases', member)
  redis.call('ZADD', prefix .. 'job-deadlines', deadline, member)
  addToWaitingList(accountId, id, queue, model, admittedAt)
  return redis.call('HGET', prefix .. 'account:' .. accountId, 'wgt') or '1'
end

local function removeFromWaitingList(accountId, id, queue, model)
  local waiting = waitingOf(accountId, queue, model)
  if redis.call('ZREM', waiting, id) == 0 then return end
  redis.call('HINCRBY', prefix .. 'job-totals', queue, -1)
  if redis.call('EXISTS', waiting) == 0 then
    redis.call('SREM', prefix .. 'job-lines', accountId .. ' ' .. queue .. ' ' .. model)
  end
end

-- Adds bytes (negative to subtract) to two counters of the Redis memory that jobs use: the account's and the shard's.
local function changeBytes(accountId, by)
  if by == 0 then return end
  redis.call('HINCRBY', prefix .. 'jobs-held:' .. accountId, 'bytes', by)
  redis.call('HINCRBY', prefix .. 'job-totals', 'bytes', by)
end

-- The measured size of a record and its list entries.
local function recordBytes(url) return emptyRecordBytes + #url end

local function dropBody(accountId, id)
  local record = recordOf(accountId, id)
  changeBytes(accountId, -tonumber(redis.call('HGET', record, 'bytes') or '0'))
  redis.call('HSET', record, 'bytes', 0)
  redis.call('UNLINK', prefix .. 'job-body:' .. accountId .. ':' .. id)
end

-- The claim of the job's Idempotency-Key; nil if there is none or it belongs to another request.
local function claimOf(accountId, id, hold)
  local claimHash = string.match(hold, '^%d+ %d %d+ <%d+ (%S+)')
  local claim = claimHash and prefix .. 'claim:' .. accountId .. ':' .. claimHash
  if claim and redis.call('HGET', claim, 'id') == id then return claim end
end

-- Must be the first write of a script that ends a job, because it needs no memory. When Redis is out of memory, it
-- rejects scripts whose first write needs some, and jobs that cannot end would never free theirs.
local function dropLease(accountId, id)
  redis.call('ZREM', prefix .. 'job-leases', accountId .. ' ' .. id)
end

-- Call after dropLease. Removes the job from every list of unfinished jobs and adds it to those of ended jobs. `to` is
-- the new status; `code` is '' unless the job failed.
local function endJob(accountId, id, to, code, message, cost, isFree)
  local record, member = recordOf(accountId, id), accountId .. ' ' .. id
  local status, admittedAt, queue, model, url, bytes, hold, cancelAt, events =
    unpack(redis.call('HMGET', record, 'st', 'at', 'q', 'm', 'url', 'bytes', 'hold', 'ca', 'we'))
  removeFromWaitingList(accountId, id, queue, model)
  redis.call('ZREM', prefix .. 'job-deadlines', member)
  if cancelAt then redis.call('ZREM', prefix .. 'job-cancel-times', member) end
  changeStatus(accountId, id, record, status, to, admittedAt)
  redis.call('HSET', record, 'cost', cost, 'free', isFree)
  if code ~= '' then redis.call('HSET', record, 'code', code, 'msg', message) end
  local keepsBody = to == 'f' and not string.find(finalFailures, ' ' .. code .. ' ', 1, true)
    and tonumber(bytes or '0') <= maxInlineBytes
    and redis.call('ZCARD', prefix .. 'jobs:' .. accountId .. ':f') <= maxFailedBodies
  if to == 'f' then redis.call('ZADD', prefix .. 'job-failures:' .. queue, nowMs, member) end
  -- If an operator retries the job, the same amount is reserved again.
  if keepsBody and hold then redis.call('HSET', record, 'was', hold) end
  redis.call('HDEL', record, 'hold', 'w')
  if keepsBody then redis.call('PEXPIRE', prefix .. 'job-body:' .. accountId .. ':' .. id, jobLifetimeMs)
  else dropBody(accountId, id) end
  redis.call('ZADD', prefix .. 'jobs-ended', nowMs + jobLifetimeMs, member)
  redis.call('PEXPIRE', record, jobLifetimeMs + recordSlackMs)
  if url and string.find(events or 'e', 'e', 1, true) then redis.call('ZADD', prefix .. 'job-hooks', nowMs, member) end
end

-- Whether the time is over after which its caller no longer wants the job. `cancelAt` is the field of its record.
local function isOverdue(cancelAt) return cancelAt and tonumber(cancelAt) <= nowMs end

-- Whether this attempt still owns the job. A worker that loses a job or hands it back is removed from its record.
local function isHeldBy(record, attempt)
  local status, current, workerId = unpack(redis.call('HMGET', record, 'st', 'n', 'w'))
  return current == attempt and workerId and (status == 'q' or status == 'a')
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

-- Adds one job's reservation to the totals of the account's jobs, or subtracts it: to that of all, and to that of the
-- day of its admission, from which the sums of budgets are restored.
local function changeReserved(accountId, cost, isFree, admittedAt, sign)
  local held = prefix .. 'jobs-held:' .. accountId
  if isFree == '1' then redis.call('HINCRBY', held, 'free', sign)
  elseif cost ~= '0' then
    local by, day = sign < 0 and '-' .. cost or cost, 'day:' .. dayOf(admittedAt)
    redis.call('HINCRBY', held, 'cost', by)
    if redis.call('HINCRBY', held, day, by) <= 0 then redis.call('HDEL', held, day) end
  end
end

-- Releases the job's reservation: no model will be called for it any more.
local function releaseReservation(accountId, id)
  local hold = redis.call('HGET', recordOf(accountId, id), 'hold')
  if not hold then return end
  local cost, isFree, admittedAt = string.match(hold, '^(%d+) (%d) (%d+)')
  changeReserved(accountId, cost, isFree, admittedAt, -1)
  local account = prefix .. 'account:' .. accountId
  if redis.call('EXISTS', account) == 1 then
    if isFree == '1' then redis.call('HINCRBY', account, 'fres', -1)
    elseif cost ~= '0' then
      redis.call('HINCRBY', account, 'res', '-' .. cost)
      releaseFromBudgets(account, admittedAt, cost)
    end
  end
  local claim = claimOf(accountId, id, hold)
  if claim then redis.call('DEL', claim) end
end

local function endWithoutCharge(accountId, id, to, code, message)
  dropLease(accountId, id)
  releaseReservation(accountId, id)
  endJob(accountId, id, to, code, message, '0', 0)
end
