-- Adds a webhook to the account's undelivered ones. Replies 1, or 0 if the account is at its limit.

local undelivered = KEYS[1] -- sorted set: the account's webhooks by the time until which they count (s)
local id = ARGV[1] -- of the webhook
local maxUndelivered = tonumber(ARGV[2]) -- the limit
local lifetime = tonumber(ARGV[3]) -- how long the webhook counts, in seconds

local now = tonumber(redis.call('TIME')[1])
redis.call('ZREMRANGEBYSCORE', undelivered, '-inf', now)
if not redis.call('ZSCORE', undelivered, id) then
  if redis.call('ZCARD', undelivered) >= maxUndelivered then return 0 end
  redis.call('ZADD', undelivered, now + lifetime, id)
  redis.call('EXPIRE', undelivered, lifetime)
end
return 1
