-- The sliding minute of an account, for the scripts that rate-limit requests. Defines `now` (seconds), `nowMs`,
-- `dropBuckets` and `takeSlots`.
--
-- The window is a list of one-second buckets (`second:slots`) in ascending order. The account's field `win` is their
-- sum, so checking a request takes the same time regardless of the number of earlier ones. Redis's clock may step.
-- After a step back, buckets ahead of the clock are dropped like those older than a minute; otherwise an account at its
-- limit would stay rate-limited until the clock caught up. A step in either direction can therefore allow an account
-- one limit's worth of requests early, but never denies it any.

local time = redis.call('TIME')
local now = tonumber(time[1])
local nowMs = string.format('%.0f', now * 1000 + math.floor(tonumber(time[2]) / 1000))

local function readBucket(window, index)
  local second, count = string.match(redis.call('LINDEX', window, index) or '', '(%d+):(%d+)')
  return tonumber(second), tonumber(count)
end

-- Drops the buckets that are not of the last minute. Returns the sum of the others, and the newest one.
local function dropBuckets(window, used)
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

-- Returns how many slots are used now, which the calling script stores as `win`. If too few remain, takes none and also
-- returns the error reply, with the milliseconds until enough are free. A request that needs no more slots than it has
-- already taken never fails. If `isCheck` is true, only checks and takes none.
local function takeSlots(window, used, limit, slots, isCheck)
  local tailSecond, tailCount
  used, tailSecond, tailCount = dropBuckets(window, used)
  if slots <= 0 then return used end

  if used + slots > limit then
    local missing, waitMs, reset = used + slots - limit, 1000, 1
    for _, bucket in ipairs(redis.call('LRANGE', window, 0, -1)) do
      local startSecond, taken = string.match(bucket, '(%d+):(%d+)')
      reset = tonumber(startSecond) + 60 - now
      if missing > 0 then waitMs = (tonumber(startSecond) + 60) * 1000 - tonumber(nowMs) end
      missing = missing - tonumber(taken)
    end
    return used, {'rate_limited', limit, limit - used, reset, waitMs}
  end
  if isCheck then return used end

  if tailSecond == now then
    redis.call('LSET', window, -1, string.format('%d:%d', now, tailCount + slots))
  else
    redis.call('RPUSH', window, string.format('%d:%d', now, slots))
    redis.call('EXPIRE', window, 61)
  end
  return used + slots
end
