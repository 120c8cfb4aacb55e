-- Stores vectors and evicts the oldest if there is no space. Existing entries and their expiry stay unchanged.
--
-- The order is a list of records, oldest first: hash, expiry time (ms), size, and the total size of all entries ever
-- stored, including this one. The current total is computed from the first and the last record, so no separate counter
-- can drift from the list. The size of an expired entry counts until its record is dropped, and records are only
-- dropped from the front, so the total is never too low. A key stored again after it expired belongs to its later
-- record, which its expiry time identifies. One execution evicts a limited number of entries and skips vectors for
-- which that did not free enough space.
--
-- Replies {entries, bytes, evicted}: the number and size of all entries, and how many were evicted.

local order = KEYS[1] -- list: records of the stored vectors, oldest first
local prefix = ARGV[1] -- of the keys of vectors
local maxBytes = tonumber(ARGV[2]) -- of all entries together
local ttlMs = tonumber(ARGV[3]) -- lifetime of an entry
local graceMs = tonumber(ARGV[4]) -- how long the list outlives its entries
local maxEvictions = tonumber(ARGV[5]) -- per execution

-- include '../platform/redis/clock.lua'

local function read(record)
  local hash, expiry, size, sum = string.match(record, '^(%S+) (%d+) (%d+) (%d+)$')
  return hash, tonumber(expiry), tonumber(size), tonumber(sum)
end
local first, last = redis.call('LINDEX', order, 0), redis.call('LINDEX', order, -1)
local totalBytes, sum, evicted = 0, 0, 0
if first then
  local _, _, size, firstSum = read(first)
  sum = select(4, read(last))
  totalBytes = sum - firstSum + size
end
local function evictOldest()
  local hash, expiry, size = read(redis.call('LPOP', order))
  if redis.call('PEXPIRETIME', prefix .. hash) == expiry then redis.call('UNLINK', prefix .. hash) end
  totalBytes = totalBytes - size
  evicted = evicted + 1
end
while first and evicted < maxEvictions and select(2, read(first)) <= nowMs do
  evictOldest()
  first = redis.call('LINDEX', order, 0)
end

local expiry = string.format('%.0f', nowMs + ttlMs)
local eachKey, eachArg = 1, 5
while eachKey < #KEYS do
  local key = KEYS[eachKey + 1] -- string: the vector
  local hash = ARGV[eachArg + 1] -- the part of the key after the prefix
  local value = ARGV[eachArg + 2] -- bytes of the vector
  local size = tonumber(ARGV[eachArg + 3]) -- memory that the entry takes
  if size <= maxBytes and redis.call('EXISTS', key) == 0 then
    while totalBytes + size > maxBytes and evicted < maxEvictions do evictOldest() end
    if totalBytes + size <= maxBytes then
      totalBytes, sum = totalBytes + size, sum + size
      redis.call('SET', key, value, 'PXAT', expiry)
      redis.call('RPUSH', order, string.format('%s %s %.0f %.0f', hash, expiry, size, sum))
    end
  end
  eachKey, eachArg = eachKey + 1, eachArg + 3
end

local untilMs = nowMs + ttlMs + graceMs
if #KEYS > 1 and redis.call('PEXPIRETIME', order) < untilMs then
  redis.call('PEXPIREAT', order, string.format('%.0f', untilMs))
end
return {redis.call('LLEN', order), totalBytes, evicted}
