/** Part of the acquire script: records which accounts used a set of slots recently. */
export const slotUsers = `
-- Returns when an account other than this one was last granted a slot of this set. The hash stores the last account,
-- the time of its grant, and the time of the last grant to a different account.
local function findLastUseByOther(users, account)
  local latest = redis.call('HMGET', users, 'account', 'at', 'otherAt')
  return tonumber((latest[1] == account and latest[3] or latest[2]) or '0') or 0
end

local function recordUse(users, account)
  local latest = redis.call('HMGET', users, 'account', 'at')
  if latest[1] ~= account then
    redis.call('HSET', users, 'account', account, 'at', now, 'otherAt', latest[2] or 0)
  elseif now - tonumber(latest[2]) >= 1000 or now < tonumber(latest[2]) then
    redis.call('HSET', users, 'at', now)
  else
    return
  end
  redis.call('PEXPIRE', users, recentMs)
end`;
