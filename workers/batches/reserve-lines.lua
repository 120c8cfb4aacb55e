-- Reserves money for lines of a slice that are about to run. Reserves all of it or nothing.
--
-- Replies {'ok'}, {'gone'} if another worker has the slice or the batch has ended, {'stopped', why} if the lines must not
-- be run, {'refused', model, …} with the models of the lines that the account may not use, {'unknown'} if the account is
-- not in Redis, or {'short', spendable, balance, limit, remainder, left, unspent}: what can be reserved now, what could be
-- if nothing else was reserved, and the same two for the maximum cost of the batch, and for the account's budgets; they are
-- '' without one.

local prefix = KEYS[1] -- of the keys of the account's shard
local accountId = ARGV[1] -- of the account
local id = ARGV[2] -- of the batch
local number = ARGV[3] -- of the slice
local attempt = ARGV[4] -- that owns the slice
local amount = tonumber(ARGV[5]) -- nano-roubles
local models = ARGV[6] -- of the lines, as a JSON list

-- include '../../shared/money/allowed-models.lua'
-- include '../../shared/work/batches/batch-functions.lua'

local batch = batchOf(accountId, id)
local slice = findHeld(accountId, id, number, attempt)
if not slice then return {'gone'} end
local why, cost, held, maximum = unpack(redis.call('HMGET', batch, 'why', 'cost', 'res', 'max'))
if why then return {'stopped', why} end
local account = prefix .. 'account:' .. accountId
local balance, reserved, ban, isRestricted = unpack(redis.call('HMGET', account, 'bal', 'res', 'ban', 'ext'))
if not balance then return {'unknown'} end

local function stop(why)
  stopBatch(accountId, id, batch, why)
  return {'stopped', why}
end

if ban == '1' then return stop('account_banned') end
local left, unspent
if isRestricted then
  local expiresAt, allowed, ownersAllowed = unpack(redis.call('HMGET', account, 'exp', 'mod', 'omod'))
  if expiresAt and tonumber(expiresAt) <= nowMs then return stop('key_expired') end
  local refused = {'refused'}
  for _, model in ipairs(cjson.decode(models)) do
    if not isModelAllowed(model, allowed, ownersAllowed) then refused[#refused + 1] = model end
  end
  if #refused > 1 then return refused end
  local budgets = openBudgets(account)
  if budgets then left, unspent = budgets.findLeft(), budgets.findUnspent() end
end
local spendable = tonumber(balance) - tonumber(reserved)
local remainder = maximum and tonumber(maximum) - tonumber(cost)
local limit = remainder and remainder - tonumber(held)
if amount > spendable or limit and amount > limit or left and amount > left then
  return {'short', whole(spendable), balance, limit and whole(limit) or '', remainder and whole(remainder) or '',
    left and whole(left) or '', unspent and whole(unspent) or ''}
end
changeReserved(accountId, batch, amount)
slice.reserved = slice.reserved + amount
writeSlice(accountId, id, number, slice)
return {'ok'}
