-- Renews leases in one of the sorted sets of slots, and restores those that Redis has lost. Uses Redis's clock, like
-- acquire.lua, so that a worker with a wrong clock neither loses its leases nor holds them too long.
--
-- Replies 1, or 0 if the holder is not alive: a holder whose slots were freed because it seemed dead restores nothing.

local calls = KEYS[1] -- sorted set: leases by the time at which they expire
local holders = KEYS[2] -- sorted set: holders that are alive
local leaseMs = tonumber(ARGV[1]) -- until the leases expire
local holder = ARGV[2] -- of the leases

if not redis.call('ZSCORE', holders, holder) then return 0 end

-- include '../../shared/platform/redis/clock.lua'

for eachArg = 2, #ARGV - 1 do
  local lease = ARGV[eachArg + 1] -- to renew
  redis.call('ZADD', calls, nowMs + leaseMs, lease)
end
redis.call('PEXPIRE', calls, leaseMs)
return 1
