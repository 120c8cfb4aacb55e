-- Changes fields of an account if it is loaded. Otherwise the next load includes the changes.

local account = KEYS[1] -- hash: the account

if redis.call('EXISTS', account) == 0 then return end
local changes = {}
for eachArg = 0, #ARGV - 1, 2 do
  local field = ARGV[eachArg + 1] -- of the account
  local value = ARGV[eachArg + 2] -- of the field
  changes[#changes + 1] = field
  changes[#changes + 1] = value
end
redis.call('HSET', account, unpack(changes))
