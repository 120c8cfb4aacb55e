-- Reads the live workers of several queues. Shortens their entries like a heartbeat if Redis's clock stepped back:
-- while no worker lives, there are no heartbeats.
--
-- Replies for each queue a flat list of its live workers: id, milliseconds since the last heartbeat, load.

local lifetimeMs = tonumber(ARGV[1]) -- of a heartbeat

-- include '../../platform/redis/clock.lua'
-- include 'worker-registry.lua'

local untilMs = string.format('%.0f', nowMs + lifetimeMs)
local queues = {}
for eachKey = 0, #KEYS - 1, 2 do
  local workers = KEYS[eachKey + 1] -- sorted set: the queue's workers by the time until which they are alive (ms)
  local loads = KEYS[eachKey + 2] -- hash: load by worker
  shortenEntries(workers, untilMs)
  local alive = redis.call('ZRANGEBYSCORE', workers, string.format('%.0f', nowMs), '+inf', 'WITHSCORES')
  local live = {}
  for i = 1, #alive, 2 do
    local worker, aliveUntilMs = alive[i], tonumber(alive[i + 1])
    live[#live + 1] = worker
    live[#live + 1] = untilMs - aliveUntilMs
    live[#live + 1] = redis.call('HGET', loads, worker) or ''
  end
  queues[#queues + 1] = live
end
return queues
