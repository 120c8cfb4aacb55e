-- Corrects the times at which jobs are cancelled, after Redis's clock has stepped. If the clock was set back to before a
-- job was created, its time starts again, because the clock no longer says how much of it is over. No job therefore
-- takes longer than twice its time.
--
-- Replies the cursor of the scan.

local prefix = KEYS[1] -- of the keys of the shard
local cursor = ARGV[1] -- of the scan

-- include '../../platform/redis/clock.lua'
-- include '../../platform/redis/whole.lua'

local cancelTimes = prefix .. 'job-cancel-times'
local nextCursor, members = unpack(redis.call('ZSCAN', cancelTimes, cursor, 'COUNT', 100))
for i = 1, #members, 2 do
  local accountId, id = string.match(members[i], '^(%S+) (%S+)$')
  local record = prefix .. 'job:' .. accountId .. ':' .. id
  local admittedAt, duration = unpack(redis.call('HMGET', record, 'at', 'cd'))
  if admittedAt and tonumber(admittedAt) > nowMs then
    local cancelAt = whole(nowMs + tonumber(duration))
    redis.call('HSET', record, 'ca', cancelAt)
    redis.call('ZADD', cancelTimes, cancelAt, members[i])
  end
end
return nextCursor
