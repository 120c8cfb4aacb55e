-- Credits an account once per refill id. A negative amount debits it, but never below what its requests have reserved;
-- the entry records the amount actually debited. A balance above the cap would no longer be exact in Lua, so a credit
-- that would exceed it is rejected entirely.
--
-- Replies {'credited', amountNano, free}, {'repeated', marker}, {'capped'} or {'unknown'}. The marker of a credited refill
-- is `amountNano free event`.

local account = KEYS[1] -- hash: the account
local marker = KEYS[2] -- string: what was credited, or that the refill is void
local stream = KEYS[3] -- stream: ledger of the account's shard
local amount = tonumber(ARGV[1]) -- nano-roubles
local free = tonumber(ARGV[2]) -- free requests
local cap = tonumber(ARGV[3]) -- maximum balance, in nano-roubles
local event = ARGV[4] -- of the refill, as JSON
local isListed = ARGV[5] -- '1' if it has a row in the account's refill log
local accountId = ARGV[6] -- of the account
local id = ARGV[7] -- of the refill

local balance, reserved, freeRequests, freeHeld =
  unpack(redis.call('HMGET', account, 'bal', 'res', 'free', 'fres'))
if not balance then return {'unknown'} end
local known = redis.call('GET', marker)
if known then return {'repeated', known} end
balance = tonumber(balance)
if balance + amount > cap then return {'capped'} end
amount = math.max(amount, math.min(0, tonumber(reserved) - balance))
free = math.max(free, math.min(0, tonumber(freeHeld) - tonumber(freeRequests)))
local amountText, freeText = string.format('%.0f', amount), string.format('%.0f', free)
redis.call('SET', marker, amountText .. ' ' .. freeText .. ' ' .. event, 'EX', 604800)
redis.call('HINCRBY', account, 'bal', amountText)
redis.call('HINCRBY', account, 'free', freeText)
if amount > 0 then redis.call('HINCRBY', account, 'added', amountText) end
-- Every entry starts with its kind and account: readers find an account's entries by these positions.
local entry = {'kind', 'refill', 'account', accountId, 'id', id, 'amount', amountText, 'free', freeText, 'event', event}
if isListed == '1' then
  entry[#entry + 1] = 'ordinal'
  entry[#entry + 1] = redis.call('HINCRBY', account, 'codes', 1)
end
redis.call('XADD', stream, '*', unpack(entry))
return {'credited', amountText, freeText}
