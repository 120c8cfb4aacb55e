-- Loads an account from MongoDB into Redis. The state is MongoDB's copy, plus the entries in its shard's stream that
-- are not in MongoDB yet, plus the reservations of its running requests.
--
-- Each execution scans a bounded number of entries and replies its position; the next one continues from there. Only
-- the last execution writes: it finds the end of the stream and writes the account in the same step. Entries never
-- change, so those already read stay valid as long as none is trimmed before it is read. Each execution checks that:
-- the last entry read must still be in the stream or be the last one trimmed. The first execution checks the entry that
-- was trimmed last before MongoDB was read, so every entry that MongoDB did not have is in the stream.
--
-- Replies {'restored'}, {'present'}, {'stale'}, {'recovering'} (see restore-script.ts) or {'more', last, name, value,
-- …}: the id of the last entry read, and the fields that changed, to be passed to the next execution.
-- luacheck: read globals maxSafeInteger

local account = KEYS[1] -- hash: the account
local reservations = KEYS[2] -- hash: reservations of the account's shard by request
local stream = KEYS[3] -- stream: ledger of the shard
local window = KEYS[4] -- list: the account's sliding minute
local trimmed = KEYS[5] -- string: id of the last entry trimmed from the stream
local recovering = KEYS[6] -- string: set while no account of the shard may be restored
local jobsHeld = KEYS[7] -- hash: what the account's durable jobs have reserved
local accountId = ARGV[1] -- of the account
local overwrites = ARGV[2] -- '1' to replace an account that is already in Redis
local lastSeen = ARGV[3] -- id of the entry that must still be in the stream or be the last one trimmed; '' for none
local from = ARGV[4] -- id of the last entry that the fields include
local checkpoint = ARGV[5] -- id of the last entry that MongoDB has applied
local maxEntries = tonumber(ARGV[6]) -- to scan

-- include '../ledger/ledger-stream.lua'

if overwrites == '0' and redis.call('EXISTS', account) == 1 then return {'present'} end
if redis.call('EXISTS', recovering) == 1 then return {'recovering'} end
if (redis.call('GET', trimmed) or '') ~= lastSeen
  and (lastSeen == '' or #redis.call('XRANGE', stream, lastSeen, lastSeen) == 0) then return {'stale'} end
if advanceStream(stream, recovering, checkpoint) then return {'recovering'} end

local fields = {}
for eachArg = 6, #ARGV - 1, 2 do
  local field = ARGV[eachArg + 1] -- of the account
  local value = ARGV[eachArg + 2] -- of the field
  fields[field] = value
end
-- The same conditions as in parseLedgerEntry: an entry that MongoDB ignores must be ignored here, too.
local function isInteger(text, pattern)
  return text and string.find(text, pattern) and math.abs(tonumber(text)) <= maxSafeInteger
end
local function isCount(text) return isInteger(text, '^%d+$') end
local sums = {bal = 0, added = 0, free = 0}
local highest = {charges = tonumber(fields.charges), codes = tonumber(fields.codes)}
local entries = redis.call('XRANGE', stream, '(' .. from, '+', 'COUNT', maxEntries)
for _, entry in ipairs(entries) do
  local values = entry[2]
  -- Every entry starts with its kind and account. Most belong to other accounts.
  local first, kind, second, owner = unpack(values, 1, 4)
  if owner == accountId and second == 'account' and first == 'kind' then
    local e = {}
    for i = 1, #values, 2 do e[values[i]] = values[i + 1] end
    if kind == 'charge' and isCount(e.cost) and isCount(e.shortfall) and isCount(e.ordinal)
      and (e.free == '0' or e.free == '1') then
      sums.bal = sums.bal - tonumber(e.cost)
      sums.free = sums.free - tonumber(e.free)
      highest.charges = math.max(highest.charges, tonumber(e.ordinal))
    elseif kind == 'refill' and isInteger(e.amount, '^%-?%d+$') and isInteger(e.free, '^%-?%d+$')
      and (not e.ordinal or isCount(e.ordinal)) then
      local amount = tonumber(e.amount)
      sums.bal = sums.bal + amount
      sums.added = sums.added + math.max(0, amount)
      sums.free = sums.free + tonumber(e.free)
      highest.codes = math.max(highest.codes, tonumber(e.ordinal or 0))
    end
  end
end
for name, sum in pairs(sums) do highest[name] = tonumber(fields[name]) + sum end
for name, value in pairs(highest) do fields[name] = string.format('%.0f', value) end
if #entries == maxEntries then
  local reply = {'more', entries[#entries][1]}
  for name in pairs(highest) do
    reply[#reply + 1] = name
    reply[#reply + 1] = fields[name]
  end
  return reply
end

-- The total reserved by its durable jobs is stored and updated with every change.
local heldCost, heldFree = unpack(redis.call('HMGET', jobsHeld, 'cost', 'free'))
local reserved, freeHeld = tonumber(heldCost or '0'), tonumber(heldFree or '0')
local prefix = accountId .. ' '
for _, value in ipairs(redis.call('HVALS', reservations)) do
  if string.sub(value, 1, #prefix) == prefix then
    local cost, isFree = string.match(value, '^%S+ (%d+) (%d)')
    reserved = reserved + tonumber(cost)
    freeHeld = freeHeld + tonumber(isFree)
  end
end
fields.res, fields.fres, fields.win = string.format('%.0f', reserved), freeHeld, 0
-- If the account is already in Redis, keep its values of these fields: changes are written to Redis as well and may be
-- newer than the copy read from MongoDB.
local keptFields = {'key', 'rpm', 'mqj', 'wgt', 'ban'}
local current = redis.call('HMGET', account, unpack(keptFields))
for i, name in ipairs(keptFields) do fields[name] = current[i] or fields[name] end
redis.call('DEL', window)
for name, value in pairs(fields) do redis.call('HSET', account, name, value) end
return {'restored'}
