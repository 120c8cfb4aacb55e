-- What is used in a sliding minute: a list of one-second buckets (`second:count`) in ascending order. Their sum is a field
-- of the account, so checking a request takes the same time regardless of the number of earlier ones.
--
-- Redis's clock may step. After a step back, buckets ahead of the clock are dropped like those older than a minute;
-- otherwise an account at its limit would stay rate-limited until the clock caught up. A step in either direction can
-- therefore allow an account one limit's worth of requests early, but never denies it any.

local function readBucket(window, index)
  local second, count = string.match(redis.call('LINDEX', window, index) or '', '(%d+):(%d+)')
  return tonumber(second), tonumber(count)
end

-- Drops the buckets that are not of the last minute. Returns the sum of the others, and the newest one.
local function dropBuckets(window, used, now)
  local second, count = readBucket(window, -1)
  if not second then used = 0 end
  while second and second > now do
    redis.call('RPOP', window)
    used = used - count
    second, count = readBucket(window, -1)
  end
  local tailSecond, tailCount = second, count
  second, count = readBucket(window, 0)
  while second and second <= now - 60 do
    redis.call('LPOP', window)
    used = used - count
    second, count = readBucket(window, 0)
  end
  return used, tailSecond, tailCount
end
