-- Removes a delivery from the lanes in which it may wait.

local id = ARGV[1] -- of the delivery

for eachKey = 0, #KEYS - 1 do
  local waiting = KEYS[eachKey + 1] -- sorted set: the account's deliveries that wait in one lane
  redis.call('ZREM', waiting, id)
end
