-- Finds out which tasks of a shard's durable jobs are due, so that an idle worker runs no script for each of them.
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
if has('job-leases', '-inf', nowMs) or has('job-leases', '(' .. whole(nowMs + jobLeaseMs), '+inf') then
  due[#due + 1] = 'recover'
end
if redis.call('EXISTS', prefix .. 'job-hooks', prefix .. 'job-start-hooks') > 0 then due[#due + 1] = 'queueHooks' end
if has('jobs-ended', '-inf', nowMs) then due[#due + 1] = 'delete' end
return due
