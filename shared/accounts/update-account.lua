-- Changes fields of an account if it is loaded. Otherwise the next load includes the changes.
--
-- Replies {bud, obud}: its budgets, as in budgets.lua. They are not set here, because their sums depend on the ledger. They
-- are removed if the account has no restrictions, before or after: without `ext`, nothing changes their sums.

local account = KEYS[1] -- hash: the account

if redis.call('EXISTS', account) == 0 then return {} end
local wasRestricted = redis.call('HEXISTS', account, 'ext') == 1
local changes, cleared = {}, {}
for eachArg = 0, #ARGV - 1, 2 do
  local field = ARGV[eachArg + 1] -- of the account
  local value = ARGV[eachArg + 2] -- of the field; '' to remove it
  if value == '' then
    cleared[#cleared + 1] = field
  else
    changes[#changes + 1] = field
    changes[#changes + 1] = value
  end
end
if #changes > 0 then redis.call('HSET', account, unpack(changes)) end
if #cleared > 0 then redis.call('HDEL', account, unpack(cleared)) end
if not wasRestricted or redis.call('HEXISTS', account, 'ext') == 0 then redis.call('HDEL', account, 'bud', 'obud') end
return redis.call('HMGET', account, 'bud', 'obud')
