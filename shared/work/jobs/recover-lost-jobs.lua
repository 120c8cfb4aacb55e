-- Finds jobs whose workers went silent. Each is requeued at its old position, or ends if this happened too often.
--
-- Replies {requeued, ended}: account, id, queue, model and weight of each job that was requeued, and how many ended.
-- luacheck: read globals jobLeaseMs maxAttempts maxDeaths maxPerScript

local prefix = KEYS[1] -- of the keys of the shard
local cancelledMessage = ARGV[1] -- for the caller of a job that was cancelled
local lostMessage = ARGV[2] -- for the caller of a job that is given up

-- include 'job-functions.lua'

local leases, requeued, ended = prefix .. 'job-leases', {}, 0
-- Shorten leases written before the clock stepped back. Otherwise no worker would count as lost until the clock has
-- caught up.
local maxUntilMs = nowMs + jobLeaseMs
local tooLong =
  redis.call('ZRANGE', leases, '(' .. whole(maxUntilMs), '+inf', 'BYSCORE', 'LIMIT', 0, maxPerScript)
for _, member in ipairs(tooLong) do redis.call('ZADD', leases, maxUntilMs, member) end
for _, member in ipairs(redis.call('ZRANGE', leases, '-inf', nowMs, 'BYSCORE', 'LIMIT', 0, maxPerScript)) do
  local accountId, id = string.match(member, '^(%S+) (%S+)$')
  local record = recordOf(accountId, id)
  local status, attempt, queue, model, isCancelled, cancelAt =
    unpack(redis.call('HMGET', record, 'st', 'n', 'q', 'm', 'cx', 'ca'))
  redis.call('ZREM', leases, member)
  if status == 'q' or status == 'a' then
    if isCancelled == '1' or isOverdue(cancelAt) then
      endWithoutCharge(accountId, id, 'c', 'job_cancelled', cancelledMessage)
      ended = ended + 1
    elseif recordDeath(record, attempt) >= maxDeaths or tonumber(attempt) >= maxAttempts then
      endWithoutCharge(accountId, id, 'f', 'upstream_error', lostMessage)
      ended = ended + 1
    else
      requeued[#requeued + 1] = {accountId, id, queue, model, requeue(accountId, id)}
    end
  end
end
return {requeued, ended}
