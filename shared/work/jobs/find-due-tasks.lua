-- Finds out which tasks of a shard's durable jobs and batches are due, so that an idle worker runs no script for each of them.
--
-- Replies the names of the tasks.
-- luacheck: read globals jobLeaseMs

local prefix = KEYS[1] -- of the keys of the shard

-- include '../../platform/redis/clock.lua'
-- include '../../platform/redis/whole.lua'

local function has(key, from, to)
  return #redis.call('ZRANGE', prefix .. key, from, to, 'BYSCORE', 'LIMIT', 0, 1) > 0
end

local due = {}
if has('job-deadlines', '-inf', nowMs) then due[#due + 1] = 'expire' end
if has('job-cancel-times', '-inf', nowMs) then due[#due + 1] = 'cancel' end
local function hasLost(leases)
  return has(leases, '-inf', nowMs) or has(leases, '(' .. whole(nowMs + jobLeaseMs), '+inf')
end
if hasLost('job-leases') then due[#due + 1] = 'recover' end
if redis.call('EXISTS', prefix .. 'job-hooks', prefix .. 'job-start-hooks') > 0 then due[#due + 1] = 'queueHooks' end
if has('jobs-ended', '-inf', nowMs) then due[#due + 1] = 'delete' end
if hasLost('batch-leases') then due[#due + 1] = 'recoverSlices' end
if has('batch-pauses', '-inf', nowMs) or has('batch-windows', '-inf', nowMs) then due[#due + 1] = 'wakeBatches' end
if redis.call('EXISTS', prefix .. 'batch-hooks') > 0 then due[#due + 1] = 'queueBatchHooks' end
if has('batches-ended', '-inf', nowMs) then due[#due + 1] = 'deleteBatches' end
return due
