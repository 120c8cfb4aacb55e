-- Records a heartbeat of a worker and its load, and drops workers that are dead.

local workers = KEYS[1] -- sorted set: the queue's workers by the time until which they are alive (ms)
local loads = KEYS[2] -- hash: load by worker
local workerId = ARGV[1] -- of the worker
local lifetimeMs = tonumber(ARGV[2]) -- of a heartbeat
local load = ARGV[3] -- of the worker

-- include '../../platform/redis/clock.lua'
-- include 'worker-registry.lua'

local untilMs = string.format('%.0f', nowMs + lifetimeMs)
redis.call('ZADD', workers, untilMs, workerId)
shortenEntries(workers, untilMs)
redis.call('HSET', loads, workerId, load)
for _, dead in ipairs(redis.call('ZRANGEBYSCORE', workers, '-inf', string.format('(%.0f', nowMs))) do
  redis.call('ZREM', workers, dead)
  redis.call('HDEL', loads, dead)
end
