-- The tokens that an account used in its sliding minute, if they are limited. The sum of the window (window-buckets.lua) is
-- the account's field `twin`.

-- include 'window-buckets.lua'

-- Adds tokens that are used now.
local function addTokens(account, tokens)
  if tokens <= 0 then return end
  local window, now = string.gsub(account, ':account:', ':tpm:', 1), tonumber(redis.call('TIME')[1])
  local used, tailSecond, tailCount = dropBuckets(window, tonumber(redis.call('HGET', account, 'twin') or '0'), now)
  if tailSecond == now then redis.call('LSET', window, -1, string.format('%.0f:%.0f', now, tailCount + tokens))
  else redis.call('RPUSH', window, string.format('%.0f:%.0f', now, tokens)) end
  redis.call('EXPIRE', window, 61)
  redis.call('HSET', account, 'twin', string.format('%.0f', used + tokens))
end
