-- Reserves money for lines of a slice that are about to run. Reserves all of it or nothing.
--
-- Replies {'ok'}, {'gone'} if another worker has the slice or the batch has ended, {'stopped', why} if the lines must not
-- be run, {'unknown'} if the account is not in Redis, or {'short', spendable, balance, limit, remainder}: what can be
-- reserved now, what could be if nothing else was reserved, and the same two for the maximum cost of the batch; the last
-- two are '' without one.

local prefix = KEYS[1] -- of the keys of the account's shard
local accountId = ARGV[1] -- of the account
local id = ARGV[2] -- of the batch
local number = ARGV[3] -- of the slice
local attempt = ARGV[4] -- that owns the slice
local amount = tonumber(ARGV[5]) -- nano-roubles

-- include '../../shared/work/batches/batch-functions.lua'

local batch = batchOf(accountId, id)
local slice = findHeld(accountId, id, number, attempt)
if not slice then return {'gone'} end
local why, cost, held, maximum = unpack(redis.call('HMGET', batch, 'why', 'cost', 'res', 'max'))
if why then return {'stopped', why} end
local balance, reserved, ban =
  unpack(redis.call('HMGET', prefix .. 'account:' .. accountId, 'bal', 'res', 'ban'))
if not balance then return {'unknown'} end
if ban == '1' then
  stopBatch(accountId, id, batch, 'account_banned')
  return {'stopped', 'account_banned'}
end
local spendable = tonumber(balance) - tonumber(reserved)
local remainder = maximum and tonumber(maximum) - tonumber(cost)
local limit = remainder and remainder - tonumber(held)
if amount > spendable or limit and amount > limit then
  return {'short', whole(spendable), balance, limit and whole(limit) or '', remainder and whole(remainder) or ''}
end
changeReserved(accountId, batch, amount)
slice.reserved = slice.reserved + amount
writeSlice(accountId, id, number, slice)
return {'ok'}
