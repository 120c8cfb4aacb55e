-- Frees the slots of dead holders. Replies how many leases there were.

local deadHolders = KEYS[1] -- sorted set: holders that were declared dead

local isDead, freed = {}, 0
for _, name in ipairs(redis.call('ZRANGE', deadHolders, 0, -1)) do isDead[name] = true end
for eachKey = 1, #KEYS - 1 do
  local calls = KEYS[eachKey + 1] -- sorted set: leases of slots
  for _, lease in ipairs(redis.call('ZRANGE', calls, 0, -1)) do
    if isDead[string.match(lease, '|([^|]*):%d+$')] then freed = freed + redis.call('ZREM', calls, lease) end
  end
end
return freed
