-- Cancels jobs whose time to be cancelled has passed. Ends those that wait. If a worker has the job, records the
-- cancellation request: only that worker knows what was sent to a vendor.
--
-- Replies {checked, lists, workers}: how many times had passed, account, queue and model of each job that ended, and
-- worker and id of each job that its worker must end.
-- luacheck: read globals maxPerScript

local prefix = KEYS[1] -- of the keys of the shard
local overdueMessage = ARGV[1] -- for the callers of the jobs

-- include 'job-functions.lua'

local cancelTimes, lists, workers = prefix .. 'job-cancel-times', {}, {}
local due = redis.call('ZRANGE', cancelTimes, '-inf', nowMs, 'BYSCORE', 'LIMIT', 0, maxPerScript)
for _, member in ipairs(due) do
  local accountId, id = string.match(member, '^(%S+) (%S+)$')
  local record = recordOf(accountId, id)
  redis.call('ZREM', cancelTimes, member)
  local status, workerId, queue, model = unpack(redis.call('HMGET', record, 'st', 'w', 'q', 'm'))
  if status == 'q' or status == 'a' then
    if workerId then
      redis.call('HSET', record, 'cx', '1')
      workers[#workers + 1] = {workerId, id}
    else
      endWithoutCharge(accountId, id, 'c', 'job_cancelled', overdueMessage)
      lists[#lists + 1] = {accountId, queue, model}
    end
  end
end
return {#due, lists, workers}
