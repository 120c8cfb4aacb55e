-- The registry of a queue's workers: a sorted set with the time until which each is alive.

-- If Redis's clock stepped back, dead workers would count as alive until it caught up. Shortens all entries to the
-- usual lifetime from now.
local function shortenEntries(workers, untilMs)
  for _, worker in ipairs(redis.call('ZRANGEBYSCORE', workers, '(' .. untilMs, '+inf')) do
    redis.call('ZADD', workers, untilMs, worker)
  end
end
