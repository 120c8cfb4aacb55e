-- Moves all heartbeats of a shard back if Redis's clock has stepped back. Otherwise, those of dead processes would stay
-- valid for the length of the step.
-- luacheck: read globals clockStepMs

local heldRequests = KEYS[1] -- sorted set: requests by the time at which their heartbeat expires
local clock = KEYS[2] -- string: Redis's time at the last call

-- include '../platform/redis/clock.lua'

local stepMs = tonumber(redis.call('GET', clock) or '0') - nowMs
redis.call('SET', clock, string.format('%.0f', nowMs))
if stepMs < clockStepMs then return end
local heartbeats = redis.call('ZRANGE', heldRequests, 0, -1, 'WITHSCORES')
for i = 1, #heartbeats, 2 do
  local id, untilMs = heartbeats[i], tonumber(heartbeats[i + 1])
  redis.call('ZADD', heldRequests, string.format('%.0f', untilMs - stepMs), id)
end
