-- Finds slices whose workers went silent, and lets other workers take them.
--
-- Replies account, id, queue, model and weight of each batch whose lines can be taken again.
-- luacheck: read globals maxPerScript

local prefix = KEYS[1] -- of the keys of the shard

-- include '../../shared/work/batches/batch-functions.lua'

local leases, returned = prefix .. 'batch-leases', {}
-- Shorten leases written before the clock stepped back. Otherwise no worker would count as lost until the clock has
-- caught up.
local maxUntilMs = nowMs + sliceLeaseMs
local tooLong = redis.call('ZRANGE', leases, '(' .. whole(maxUntilMs), '+inf', 'BYSCORE', 'LIMIT', 0, maxPerScript)
for _, member in ipairs(tooLong) do redis.call('ZADD', leases, maxUntilMs, member) end
for _, member in ipairs(redis.call('ZRANGE', leases, '-inf', nowMs, 'BYSCORE', 'LIMIT', 0, maxPerScript)) do
  local accountId, id, number = string.match(member, '^(%S+) (%S+) (%S+)$')
  local slice = readSlice(accountId, id, number)
  redis.call('ZREM', leases, member)
  if slice and slice.worker ~= '-' then
    local batch = batchOf(accountId, id)
    slice.deaths = slice.deaths + 1
    returnSlice(accountId, id, batch, number, slice)
    returned[#returned + 1] = wake(accountId, id, batch)
  end
end
return returned
