-- Takes the oldest delivery of each of the next accounts, up to a number of accounts. An account with more deliveries
-- moves to the end of the turns. Busy accounts are passed over and keep their turns. Replies the ids of the deliveries.

local turns = KEYS[1] -- sorted set: accounts by turn
local count = tonumber(ARGV[1]) -- maximum number of accounts
local waitingPrefix = ARGV[2] -- of the accounts' sorted sets of waiting deliveries

local busy, busyCount = {}, 0
for eachArg = 2, #ARGV - 1 do
  local busyAccount = ARGV[eachArg + 1] -- id of an account to pass over
  busy[busyAccount] = true
  busyCount = busyCount + 1
end
local taken = {}
for _, account in ipairs(redis.call('ZRANGE', turns, 0, count + busyCount - 1)) do
  if #taken == count then break end
  if not busy[account] then
    local waiting = waitingPrefix .. account
    local oldest = redis.call('ZPOPMIN', waiting)[1]
    if oldest then taken[#taken + 1] = oldest end
    if redis.call('EXISTS', waiting) == 1 then
      local now = redis.call('TIME')
      redis.call('ZADD', turns, now[1] * 1000000 + now[2], account)
    else
      redis.call('ZREM', turns, account)
    end
  end
end
return taken
