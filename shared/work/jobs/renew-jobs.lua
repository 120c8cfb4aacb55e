-- Renews the leases of taken jobs. Replies {id, reason} for each job that the worker must stop: 'cancelled' by its
-- caller, 'overdue' because its time to be cancelled has passed, or 'gone' because it has ended or another worker has it.
-- luacheck: read globals jobLeaseMs

local prefix = KEYS[1] -- of the keys of the accounts' shard

-- include 'job-functions.lua'

local stop = {}
for eachArg = 0, #ARGV - 1, 3 do
  local accountId = ARGV[eachArg + 1] -- of the account
  local id = ARGV[eachArg + 2] -- of the job
  local attempt = ARGV[eachArg + 3] -- of the worker
  local record = recordOf(accountId, id)
  if not isHeldBy(record, attempt) then
    undoDeath(record, attempt)
    stop[#stop + 1] = {id, 'gone'}
  else
    local isCancelled, cancelAt = unpack(redis.call('HMGET', record, 'cx', 'ca'))
    if isCancelled == '1' then stop[#stop + 1] = {id, 'cancelled'}
    elseif isOverdue(cancelAt) then stop[#stop + 1] = {id, 'overdue'} end
    redis.call('ZADD', prefix .. 'job-leases', nowMs + jobLeaseMs, accountId .. ' ' .. id)
  end
end
return stop
