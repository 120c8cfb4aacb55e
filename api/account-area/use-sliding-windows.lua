-- Counts an attempt in sliding windows, or checks them (see sliding-window-script.ts).
--
-- A window is a sorted set with one member per attempt, scored by Redis's time. It never has more members than its
-- limit: when an attempt is added to a full window, only the newest are kept, because only they determine when another
-- attempt is allowed.
--
-- Redis's clock may step back. Attempts that are then in the future are moved to the current time, so that a step back
-- neither allows additional attempts nor locks anyone out for longer than one window.
--
-- A repeated attempt that has a place in a window keeps that place, from then on with the time of its repetition.
--
-- Replies {index, waitMs} of the full window with the longest wait, from 1; {0, 0} if none was full.

local use = ARGV[1] -- 'take', 'check' or 'count'
local member = ARGV[2] -- names the attempt

-- include '../../shared/platform/redis/clock.lua'

local now = string.format('%.0f', nowMs)
local windows, fullIndex, longestWaitMs = {}, 0, 0
local eachKey, eachArg = 0, 2
while eachKey < #KEYS do
  local window = KEYS[eachKey + 1] -- sorted set: attempts by time
  local limit = tonumber(ARGV[eachArg + 1]) -- attempts
  local windowMs = tonumber(ARGV[eachArg + 2]) -- length of the window

  redis.call('ZREMRANGEBYSCORE', window, '-inf', string.format('%.0f', nowMs - windowMs))
  for _, futureMember in ipairs(redis.call('ZRANGEBYSCORE', window, '(' .. now, '+inf')) do
    redis.call('ZADD', window, now, futureMember)
  end
  windows[#windows + 1] = {key = window, limit = limit, windowMs = windowMs}
  local excess = redis.call('ZCARD', window) - limit
  if excess >= 0 and not redis.call('ZSCORE', window, member) then
    local freeing = redis.call('ZRANGE', window, excess, excess, 'WITHSCORES')
    local waitMs = tonumber(freeing[2]) + windowMs - nowMs
    if waitMs > longestWaitMs then fullIndex, longestWaitMs = #windows, waitMs end
  end
  eachKey, eachArg = eachKey + 1, eachArg + 2
end

if use == 'count' or (use == 'take' and fullIndex == 0) then
  for _, window in ipairs(windows) do
    redis.call('ZADD', window.key, now, member)
    redis.call('ZREMRANGEBYRANK', window.key, 0, -1 - window.limit)
    redis.call('PEXPIRE', window.key, window.windowMs)
  end
end
return {fullIndex, longestWaitMs}
