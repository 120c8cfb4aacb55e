-- The tokens that an account used in its sliding minute, if they are limited: a list of one-second buckets like that of
-- the requests (rate-window.lua), whose sum is the account's field `twin`.

-- Adds tokens that are used now.
local function addTokens(account, tokens)
  if tokens <= 0 then return end
  local window, now = string.gsub(account, ':account:', ':tpm:', 1), redis.call('TIME')[1]
  local newest = redis.call('LINDEX', window, -1)
  local second, count = string.match(newest or '', '(%d+):(%d+)')
  if second == now then redis.call('LSET', window, -1, string.format('%s:%.0f', now, count + tokens))
  else redis.call('RPUSH', window, string.format('%s:%.0f', now, tokens)) end
  redis.call('EXPIRE', window, 61)
  -- The sum of a window that has expired is no longer valid.
  if newest then redis.call('HINCRBY', account, 'twin', string.format('%.0f', tokens))
  else redis.call('HSET', account, 'twin', string.format('%.0f', tokens)) end
end
