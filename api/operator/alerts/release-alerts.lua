-- Ends the lease for sending alerts if this process holds it.

local lease = KEYS[1] -- string: the process that sends alerts
local process = ARGV[1] -- the process that releases it

if redis.call('GET', lease) == process then redis.call('DEL', lease) end
return 1
