-- Sums the reservations of an account's durable jobs and batches.
--
-- Replies {cost, free, summedCost, summedFree}: the stored counters, and the sums over the jobs, which are false if
-- there are too many of them.
-- luacheck: read globals maxSummedJobs

local prefix = KEYS[1] -- of the keys of the account's shard
local accountId = ARGV[1] -- of the account

local cost, free = unpack(redis.call('HMGET', prefix .. 'jobs-held:' .. accountId, 'cost', 'free'))
local queued, active = prefix .. 'jobs:' .. accountId .. ':q', prefix .. 'jobs:' .. accountId .. ':a'
if redis.call('ZCARD', queued) + redis.call('ZCARD', active) > maxSummedJobs then return {cost, free, false, false} end
local summedCost, summedFree = 0, 0
for _, list in ipairs({queued, active}) do
  for _, id in ipairs(redis.call('ZRANGE', list, 0, -1)) do
    local hold = redis.call('HGET', prefix .. 'job:' .. accountId .. ':' .. id, 'hold')
    local amount, isFree = string.match(hold or '0 0', '^(%d+) (%d)')
    if isFree == '1' then summedFree = summedFree + 1 else summedCost = summedCost + tonumber(amount) end
  end
end
for _, id in ipairs(redis.call('ZRANGE', prefix .. 'batches-open:' .. accountId, 0, -1)) do
  for _, slice in ipairs(redis.call('HVALS', prefix .. 'batch-slices:' .. accountId .. ':' .. id)) do
    summedCost = summedCost + tonumber(string.match(slice, '^%d+ %d+ %d+ %S+ %d+ %d+ (%d+)'))
  end
end
return {cost, free, string.format('%.0f', summedCost), string.format('%.0f', summedFree)}
