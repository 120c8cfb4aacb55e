-- Closes a breaker when the response to its probe starts well. Replies 1 if it was still open, else 0. A holder that
-- was declared dead closes nothing.

local health = KEYS[1] -- hash: recent outcomes of the route, and its breaker
local failedAccounts = KEYS[2] -- sorted set: accounts whose latest two calls failed
local struckAccounts = KEYS[3] -- sorted set: accounts whose latest call failed, but not the one before
local holders = KEYS[4] -- sorted set: holders that are alive
local holder = ARGV[1] -- of the probe's slots

if not redis.call('ZSCORE', holders, holder) or redis.call('HEXISTS', health, 'until') == 0 then return 0 end
redis.call('DEL', health, failedAccounts, struckAccounts)
return 1
