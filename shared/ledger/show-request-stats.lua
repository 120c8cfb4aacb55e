-- Replies the sums shown during a step, as a flat list of fields and values. The first reader in a step sums the
-- buckets, and all others get the same sums until the next step. If each server computed its own sums, they would
-- differ by the requests settled in between.

local shown = KEYS[1] -- hash: the step, and the sums shown during it
local step = ARGV[1] -- start of the step (ms)
local lifetimeMs = ARGV[2] -- of the shown sums

local shownStep = redis.call('HGET', shown, 'step')
if shownStep and tonumber(shownStep) >= tonumber(step) then return redis.call('HGETALL', shown) end
local sums = {}
for eachKey = 1, #KEYS - 1 do
  local bucket = KEYS[eachKey + 1] -- hash: a part of the window
  local fields = redis.call('HGETALL', bucket)
  for i = 1, #fields, 2 do
    local name, amount = fields[i], tonumber(fields[i + 1])
    sums[name] = (sums[name] or 0) + amount
  end
end
redis.call('DEL', shown)
redis.call('HSET', shown, 'step', step)
for name, sum in pairs(sums) do redis.call('HSET', shown, name, string.format('%.0f', sum)) end
redis.call('PEXPIRE', shown, lifetimeMs)
return redis.call('HGETALL', shown)
