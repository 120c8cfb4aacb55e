-- The sliding minute of an account, for the scripts that rate-limit requests. Defines `now` (seconds), `nowMs` and
-- `takeSlots`.
--
-- The window is as in window-buckets.lua; its sum is the account's field `win`.

local time = redis.call('TIME')
local now = tonumber(time[1])
local nowMs = string.format('%.0f', now * 1000 + math.floor(tonumber(time[2]) / 1000))

-- include 'window-buckets.lua'

-- Returns how many slots are used now, which the calling script stores as `win`. If too few remain, takes none and also
-- returns the error reply, with the milliseconds until enough are free. A request that needs no more slots than it has
-- already taken never fails. If `isCheck` is true, only checks and takes none.
local function takeSlots(window, used, limit, slots, isCheck)
  local tailSecond, tailCount
  used, tailSecond, tailCount = dropBuckets(window, used, now)
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
