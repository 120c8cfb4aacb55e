-- Ends the lease if this worker holds it.

local lease = KEYS[1] -- string: the worker that holds it
local workerId = ARGV[1] -- the worker that releases it

if redis.call('GET', lease) == workerId then redis.call('DEL', lease) end
return 1
