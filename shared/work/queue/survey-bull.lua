-- Counts the waiting items of BullMQ queues, and reads the names and times of the next ones.
--
-- Replies for each queue {items, read}: the number of its items, and a flat list of name and creation time (ms).

local maxRead = tonumber(ARGV[1]) -- items that are read

local queues = {}
for eachKey = 0, #KEYS - 1, 3 do
  local wait = KEYS[eachKey + 1] -- list: ids of items without a priority, the next one last
  local prioritized = KEYS[eachKey + 2] -- sorted set: ids of items with a priority, the next one first
  local itemPrefix = KEYS[eachKey + 3] -- of each item's hash
  local items = redis.call('LLEN', wait) + redis.call('ZCARD', prioritized)
  local ids = redis.call('LRANGE', wait, -maxRead, -1)
  for _, id in ipairs(redis.call('ZRANGE', prioritized, 0, maxRead - 1)) do ids[#ids + 1] = id end
  local read = {}
  for _, id in ipairs(ids) do
    local name, createdAt = unpack(redis.call('HMGET', itemPrefix .. id, 'name', 'timestamp'))
    if name then
      read[#read + 1] = name
      read[#read + 1] = createdAt or '0'
    end
  end
  queues[#queues + 1] = {items, read}
end
return queues
