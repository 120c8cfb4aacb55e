-- Records positions of the account's jobs that are about to be reported. Once reported, a position never increases.
-- Replies the lowest position ever reported of each job, including this one.

local prefix = KEYS[1] -- of the keys of the account's shard
local accountId = ARGV[1] -- of the account

local lowest = {}
for eachArg = 1, #ARGV - 1, 2 do
  local id = ARGV[eachArg + 1] -- of a job
  local position = tonumber(ARGV[eachArg + 2]) -- to report
  local record = prefix .. 'job:' .. accountId .. ':' .. id
  local status, before = unpack(redis.call('HMGET', record, 'st', 'pos'))
  local reported = tonumber(before or position)
  if status == 'q' and (not before or position < reported) then redis.call('HSET', record, 'pos', position) end
  lowest[#lowest + 1] = status == 'q' and math.min(reported, position) or reported
end
return lowest
