-- Releases the reservation of a request without a heartbeat, and with it the claim of its Idempotency-Key. If the
-- request is settled after that, the settlement restores the claim.
--
-- Replies 1, or 0 if the reservation has changed or the request has a heartbeat again.

local account = KEYS[1] -- hash: the account
local reservations = KEYS[2] -- hash: reservations of the account's shard by request
local orphans = KEYS[3] -- hash: reservations released as orphans by request
local heldRequests = KEYS[4] -- sorted set: requests by the time at which their heartbeat expires
local claim = KEYS[5] -- hash: the claim of the Idempotency-Key; the reservations again if there is none
local id = ARGV[1] -- of the request
local reservation = ARGV[2] -- as it was read

-- include '../platform/redis/clock.lua'
-- include 'budgets.lua'

if redis.call('HGET', reservations, id) ~= reservation then return 0 end
local untilMs = redis.call('ZSCORE', heldRequests, id)
if untilMs and tonumber(untilMs) >= nowMs then return 0 end
redis.call('HDEL', reservations, id)
local claimBody = claim ~= reservations and redis.call('HGET', claim, 'id') == id and redis.call('HGET', claim, 'body')
local orphan = reservation .. (claimBody and ' ' .. claimBody or '') .. '|' .. string.format('%.0f', nowMs)
redis.call('HSET', orphans, id, orphan)
if redis.call('EXISTS', account) == 1 then
  local cost, isFree, admittedAt = string.match(reservation, '^%S+ (%d+) (%d) (%d+)')
  if isFree == '1' then redis.call('HINCRBY', account, 'fres', -1)
  elseif cost ~= '0' then
    redis.call('HINCRBY', account, 'res', '-' .. cost)
    releaseFromBudgets(account, admittedAt, cost)
  end
end
if claimBody then redis.call('DEL', claim) end
return 1
