-- Sends a heartbeat for requests of one shard. It never makes a request's previous heartbeat expire earlier: a job that
-- may outlive its process sends one with a longer lifetime.

local heldRequests = KEYS[1] -- sorted set: requests by the time at which their heartbeat expires
local lifetimeMs = tonumber(ARGV[1]) -- of the heartbeat

-- include '../platform/redis/clock.lua'

local untilMs = string.format('%.0f', nowMs + lifetimeMs)
for eachArg = 1, #ARGV - 1 do
  local id = ARGV[eachArg + 1] -- of a request
  redis.call('ZADD', heldRequests, 'GT', untilMs, id)
end
