-- Starts or extends leases of running jobs of a queue. A job that Redis has lost is added again, as if it started now.
-- If the clock stepped back, leases of dead workers would stay valid until it caught up, so all leases are shortened to
-- the usual length. Expired leases are removed.

local index = KEYS[1] -- hash: counters of all models
local runningPrefix = KEYS[2] -- of each model's sorted set: running jobs by the time at which their lease expires
local startedPrefix = KEYS[3] -- of each model's hash: start time by job
local leaseMs = tonumber(ARGV[1]) -- length of a lease
local isStart = ARGV[2] -- '1' if the jobs start now, even if the same jobs started before

-- include '../../platform/redis/clock.lua'
-- include '../../platform/redis/whole.lua'

local untilMs = whole(nowMs + leaseMs)
for eachArg = 2, #ARGV - 1, 2 do
  local model = ARGV[eachArg + 1] -- of the job
  local id = ARGV[eachArg + 2] -- of the job
  local running, started = runningPrefix .. model, startedPrefix .. model
  redis.call('ZADD', running, untilMs, id)
  if isStart == '1' then redis.call('HDEL', started, id) end
  redis.call('HSETNX', started, id, whole(nowMs))
  redis.call('HSETNX', index, 'waiting:' .. model, 0)
  for _, tooLong in ipairs(redis.call('ZRANGEBYSCORE', running, '(' .. untilMs, '+inf')) do
    redis.call('ZADD', running, untilMs, tooLong)
  end
  for _, expired in ipairs(redis.call('ZRANGEBYSCORE', running, '-inf', whole(nowMs))) do
    redis.call('ZREM', running, expired)
    redis.call('HDEL', started, expired)
  end
end
