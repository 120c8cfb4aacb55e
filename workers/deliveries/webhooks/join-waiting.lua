-- Adds a delivery to those of its account that wait in a lane. In a lane in which accounts take turns, the account gets
-- one, unless it has a turn already.

local waiting = KEYS[1] -- sorted set: the account's waiting deliveries
local turns = KEYS[2] -- sorted set: accounts by turn; the deliveries again in a lane without turns
local queuedAt = ARGV[1] -- when the delivery was queued
local id = ARGV[2] -- of the delivery
local lifetime = ARGV[3] -- of the keys, in seconds
local accountId = ARGV[4] -- of the account

redis.call('ZADD', waiting, queuedAt, id)
redis.call('EXPIRE', waiting, lifetime)
if turns ~= waiting then
  local now = redis.call('TIME')
  redis.call('ZADD', turns, 'NX', now[1] * 1000000 + now[2], accountId)
  redis.call('EXPIRE', turns, lifetime)
end
