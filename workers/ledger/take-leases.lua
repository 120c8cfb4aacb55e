-- Takes leases that are free, and renews those that this worker holds. Replies for each 1 if the worker now holds it,
-- else 0.

local workerId = ARGV[1] -- the worker that asks
local leaseMs = ARGV[2] -- milliseconds until a lease ends by itself

local held = {}
for eachKey = 0, #KEYS - 1 do
  local lease = KEYS[eachKey + 1] -- string: the worker that holds it
  local holder = redis.call('GET', lease)
  local isHeld = not holder or holder == workerId
  if isHeld then redis.call('SET', lease, workerId, 'PX', leaseMs) end
  held[#held + 1] = isHeld and 1 or 0
end
return held
