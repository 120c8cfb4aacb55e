-- Takes the lease if it is free, or renews it if this worker holds it. Replies 1 if the worker now holds it, else 0.

local lease = KEYS[1] -- string: the worker that holds it
local workerId = ARGV[1] -- the worker that asks
local leaseMs = ARGV[2] -- milliseconds until the lease ends by itself

local holder = redis.call('GET', lease)
if holder and holder ~= workerId then return 0 end
redis.call('SET', lease, workerId, 'PX', leaseMs)
return 1
