-- Counts the waiting and running jobs of a queue. Replies {waiting, running}.

local index = KEYS[1] -- hash: counters of all models
local runningPrefix = KEYS[2] -- of each model's sorted set: running jobs by the time at which their lease expires

-- include '../../platform/redis/clock.lua'
-- include '../../platform/redis/whole.lua'

local waiting, running, fields = 0, 0, redis.call('HGETALL', index)
for i = 1, #fields, 2 do
  local name, value = fields[i], fields[i + 1]
  local model = string.match(name, '^waiting:(.*)$')
  if model then
    waiting = waiting + tonumber(value)
    running = running + redis.call('ZCOUNT', runningPrefix .. model, '(' .. whole(nowMs), '+inf')
  end
end
return {waiting, running}
