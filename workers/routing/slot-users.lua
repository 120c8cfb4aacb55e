-- Which accounts used a set of slots recently: a hash with the last account, the time of its grant, and the time of the
-- last grant to a different account. Needs clock.lua.
-- luacheck: read globals recentMs

-- Returns when an account other than this one was last granted a slot of this set.
local function findLastUseByOther(users, account)
  local lastAccount, at, otherAt = unpack(redis.call('HMGET', users, 'account', 'at', 'otherAt'))
  return tonumber((lastAccount == account and otherAt or at) or '0') or 0
end

local function recordUse(users, account)
  local lastAccount, at = unpack(redis.call('HMGET', users, 'account', 'at'))
  if lastAccount ~= account then
    redis.call('HSET', users, 'account', account, 'at', nowMs, 'otherAt', at or 0)
  elseif nowMs - tonumber(at) >= 1000 or nowMs < tonumber(at) then
    redis.call('HSET', users, 'at', nowMs)
  else
    return
  end
  redis.call('PEXPIRE', users, recentMs)
end
