-- Takes the lease for sending alerts if it is free, and renews it if this process holds it. A process that holds it needs
-- no free memory for that, so that it can send an alert about a full Redis.
--
-- Replies {holds, fields}: 1 if this process now holds the lease, else 0; and what was sent, as a flat list of condition
-- and record.

local lease = KEYS[1] -- string: the process that sends alerts
local sent = KEYS[2] -- hash: condition → what was sent about it
local process = ARGV[1] -- the process that asks
local leaseMs = ARGV[2] -- milliseconds until the lease ends by itself

local holder = redis.call('GET', lease)
if holder == process then
  redis.call('PEXPIRE', lease, leaseMs)
elseif not holder then
  redis.call('SET', lease, process, 'PX', leaseMs)
  holder = process
end
return {holder == process and 1 or 0, redis.call('HGETALL', sent)}
