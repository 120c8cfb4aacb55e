-- Ends the lease of a running job and stores the service time with the time of its end.
-- luacheck: read globals maxStoredRuns serviceTimesLifetimeMs

local running = KEYS[1] -- sorted set: the model's running jobs by the time at which their lease expires
local started = KEYS[2] -- hash: start time by job
local serviceTimes = KEYS[3] -- list: durations of the latest jobs, newest first
local id = ARGV[1] -- of the job
local serviceMs = ARGV[2] -- how long it ran; '' if that does not count

-- include '../../platform/redis/clock.lua'

redis.call('ZREM', running, id)
redis.call('HDEL', started, id)
if serviceMs ~= '' then
  redis.call('LPUSH', serviceTimes, string.format('%s %.0f', serviceMs, nowMs))
  redis.call('LTRIM', serviceTimes, 0, maxStoredRuns - 1)
  redis.call('PEXPIRE', serviceTimes, serviceTimesLifetimeMs)
end
