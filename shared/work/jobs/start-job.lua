-- Marks a job as running once its worker has a call slot. The first time, requests the webhook of its start, if its
-- caller wants one.
--
-- Replies 'ok', 'cancelled' if the caller has cancelled it, 'overdue' if its time to be cancelled has passed, 'gone' if
-- the job has ended or another worker has it, or 'late' if its deadline has passed, which ends it.
-- luacheck: read globals restartWindowMs

local prefix = KEYS[1] -- of the keys of the account's shard
local accountId = ARGV[1] -- of the account
local id = ARGV[2] -- of the job
local attempt = ARGV[3] -- that starts
local deadlineMessage = ARGV[4] -- for the caller of a job whose deadline has passed

-- include 'job-functions.lua'

local record = recordOf(accountId, id)
if not isHeldBy(record, attempt) then return 'gone' end
local status, admittedAt, deadline, isCancelled, cancelAt, events, isStartReported =
  unpack(redis.call('HMGET', record, 'st', 'at', 'dl', 'cx', 'ca', 'we', 'ws'))
if isCancelled == '1' then return 'cancelled' end
if isOverdue(cancelAt) then return 'overdue' end
if status == 'a' then return 'ok' end
if tonumber(deadline) < nowMs then
  endWithoutCharge(accountId, id, 'f', 'deadline_exceeded', deadlineMessage)
  return 'late'
end
changeStatus(accountId, id, record, 'q', 'a', admittedAt)
redis.call('HSET', record, 'dl', whole(nowMs + restartWindowMs))
redis.call('ZREM', prefix .. 'job-deadlines', accountId .. ' ' .. id)
if events and string.find(events, 's', 1, true) and not isStartReported then
  redis.call('HSET', record, 'ws', '1')
  redis.call('ZADD', prefix .. 'job-start-hooks', nowMs, accountId .. ' ' .. id)
end
-- The body is needed for as long as the job may start again.
redis.call('PEXPIRE', prefix .. 'job-body:' .. accountId .. ':' .. id, 2 * restartWindowMs, 'GT')
return 'ok'
