-- Takes the account's oldest delivery from the first lane in which any waits. Replies its id, false if there is none.

for eachKey = 0, #KEYS - 1 do
  local waiting = KEYS[eachKey + 1] -- sorted set: the account's deliveries that wait in one lane
  local id = redis.call('ZPOPMIN', waiting)[1]
  if id then return id end
end
return false
