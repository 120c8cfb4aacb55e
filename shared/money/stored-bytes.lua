-- Counts the bytes of stored responses of an account (see stored-bytes.ts). All keys of the same ten minutes expire
-- together, at the end of those minutes.

local function endOfBucket(seconds) return (math.floor(seconds / 600) + 1) * 600 end

local function changeStoredBytes(counter, expiresAt, by)
  redis.call('HINCRBY', counter, expiresAt, by)
  redis.call('HINCRBY', counter, 'sum', by)
  if redis.call('TTL', counter) == -1 then redis.call('EXPIREAT', counter, expiresAt)
  else redis.call('EXPIREAT', counter, expiresAt, 'GT') end
end

local function storedBytesExceed(counter, bound)
  if tonumber(redis.call('HGET', counter, 'sum') or '0') <= bound then return false end
  local nowSeconds, sum = tonumber(redis.call('TIME')[1]), 0
  local fields = redis.call('HGETALL', counter)
  for i = 1, #fields, 2 do
    if fields[i] ~= 'sum' then
      if tonumber(fields[i]) <= nowSeconds then redis.call('HDEL', counter, fields[i])
      else sum = sum + tonumber(fields[i + 1]) end
    end
  end
  redis.call('HSET', counter, 'sum', string.format('%.0f', sum))
  return sum > bound
end
