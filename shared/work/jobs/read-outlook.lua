-- Reads what determines when the jobs of a model start.
--
-- Replies {virtualTime, turns, accounts, elapsedMs, ended}: the accounts and their start tags as a flat list, the
-- accounts and their records as a flat list, how long each running job has been running, and a flat list of service
-- time and milliseconds since the end of each measured job.

local index = KEYS[1] -- hash: counters of all models
local turns = KEYS[2] -- sorted set: accounts with waiting jobs by their start tag
local accounts = KEYS[3] -- hash: record by account
local running = KEYS[4] -- sorted set: running jobs by the time at which their lease expires
local started = KEYS[5] -- hash: start time by job
local serviceTimes = KEYS[6] -- list: durations of the latest jobs, newest first
local model = ARGV[1] -- of the jobs

-- include '../../platform/redis/clock.lua'
-- include '../../platform/redis/whole.lua'

local elapsedMs = {}
for _, id in ipairs(redis.call('ZRANGEBYSCORE', running, '(' .. whole(nowMs), '+inf')) do
  elapsedMs[#elapsedMs + 1] = math.max(0, nowMs - tonumber(redis.call('HGET', started, id) or nowMs))
end
local ended = {}
for _, measured in ipairs(redis.call('LRANGE', serviceTimes, 0, -1)) do
  local serviceMs, at = string.match(measured, '^(%d+) (%d+)$')
  ended[#ended + 1] = tonumber(serviceMs)
  ended[#ended + 1] = math.max(0, nowMs - tonumber(at))
end
return {
  redis.call('HGET', index, 'time:' .. model) or '0', redis.call('ZRANGE', turns, 0, -1, 'WITHSCORES'),
  redis.call('HGETALL', accounts), elapsedMs, ended,
}
