-- decisions 0052, 0086
--
-- The accounts whose calls of a class wait for slots of a set, in any worker. The class is 'job' (durable jobs) or
-- 'batch' (lines of batch files). A worker that has just released a slot would be the first to try and would get it
-- again each time, so the account that has waited longest goes next. A slot is reserved for each account ahead, up to a
-- quarter of all slots, because their workers take up to a tenth of a second to try. All of this is one function,
-- because Redis recreates every function of a script each time it runs.
--
-- `a` is the number of the account in `accounts`; for `full`, a list of such numbers. The actions are:
--
-- - `count`: how many accounts wait
-- - `ahead`: how many accounts have waited longer than this one
-- - `granted`: the account got its slot; if it tries again, its wait starts from zero
-- - `full`: these accounts found no free slot in this set
--
-- Needs `accounts` and clock.lua.
-- luacheck: read globals jobsWaitSinceSuffix jobsWaitUntilSuffix batchWaitsSinceSuffix batchWaitsUntilSuffix
-- luacheck: read globals classWaitMs classRetryMs

local function classWaits(action, class, calls, a)
  local since, untils = calls .. jobsWaitSinceSuffix, calls .. jobsWaitUntilSuffix
  if class == 'batch' then since, untils = calls .. batchWaitsSinceSuffix, calls .. batchWaitsUntilSuffix end
  if action == 'count' or action == 'ahead' then
    local all = redis.call('ZCARD', since)
    if all == 0 then return 0 end
    for _, range in ipairs({{'-inf', nowMs}, {'(' .. nowMs + classWaitMs, '+inf'}}) do
      for _, expired in ipairs(redis.call('ZRANGEBYSCORE', untils, range[1], range[2])) do
        redis.call('ZREM', since, expired)
        redis.call('ZREM', untils, expired)
        all = all - 1
      end
    end
    if action == 'count' then return all end
    local waitsSince = redis.call('ZSCORE', since, accounts[a])
    return waitsSince and redis.call('ZCOUNT', since, '-inf', '(' .. waitsSince) or all
  end
  if action == 'granted' then
    redis.call('ZREM', since, accounts[a])
    redis.call('ZREM', untils, accounts[a])
    -- The call may also serve the other accounts of this attempt.
    for b, account in ipairs(accounts) do
      if b ~= a then redis.call('ZADD', untils, 'XX', 'LT', nowMs + classRetryMs, account) end
    end
    return
  end
  for _, b in ipairs(a) do
    redis.call('ZADD', since, 'NX', nowMs, accounts[b])
    redis.call('ZADD', untils, nowMs + classWaitMs, accounts[b])
  end
  redis.call('PEXPIRE', since, classWaitMs)
  redis.call('PEXPIRE', untils, classWaitMs)
end
