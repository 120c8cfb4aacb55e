-- Reads values in the order of the keys up to the size limit, and extends the lifetime of those it read.
--
-- Replies a flat list: the number of a key, from 1, and its value.

local maxBytes = tonumber(ARGV[1]) -- of all values together
local lifetime = ARGV[2] -- of a value that was read, in seconds

local found, bytes = {}, 0
for eachKey = 0, #KEYS - 1 do
  local key = KEYS[eachKey + 1] -- string: the reasoning that led to a call
  local value = redis.call('GET', key)
  if value then
    bytes = bytes + #value
    if bytes > maxBytes then break end
    redis.call('EXPIRE', key, lifetime)
    found[#found + 1] = eachKey + 1
    found[#found + 1] = value
  end
end
return found
