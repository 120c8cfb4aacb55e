-- Replies 1 if another account waits for slots of any of these sets, else 0.

local accountId = ARGV[1] -- of the account that holds slots

-- include '../../shared/platform/redis/clock.lua'

for eachKey = 0, #KEYS - 1 do
  local waiting = KEYS[eachKey + 1] -- sorted set: accounts that wait, by the time at which their entry expires
  for _, account in ipairs(redis.call('ZRANGE', waiting, nowMs, '+inf', 'BYSCORE', 'LIMIT', 0, 2)) do
    if account ~= accountId then return 1 end
  end
end
return 0
