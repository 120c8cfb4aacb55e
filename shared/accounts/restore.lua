-- Loads an account from MongoDB into Redis. The state is MongoDB's copy, plus the entries in its shard's stream that
-- are not in MongoDB yet, plus the reservations of its running requests. The sums of its budgets are computed in the same
-- way, from the spending by day in MongoDB's copy; it is possible to write only these.
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
local tokenWindow = KEYS[8] -- list: the account's tokens of its sliding minute
local accountId = ARGV[1] -- of the account
local mode = ARGV[2] -- 'load', 'replace' to write over an account in Redis, or 'budgets' to write only its budgets
local lastSeen = ARGV[3] -- id of the entry that must still be in the stream or be the last one trimmed; '' for none
local from = ARGV[4] -- id of the last entry that the fields include
local checkpoint = ARGV[5] -- id of the last entry that MongoDB has applied
local maxEntries = tonumber(ARGV[6]) -- to scan

-- include '../ledger/ledger-stream.lua'
-- include '../money/budgets.lua'

local isLoaded = redis.call('EXISTS', account) == 1
if mode == 'load' and isLoaded or mode == 'budgets' and not isLoaded then return {'present'} end
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
-- What was spent by day: `day:spent day:spent`. Empty if the account has no budget.
local spentByDay = {}
for day, spent in string.gmatch(fields.days or '', '(%d+):(%d+)') do spentByDay[tonumber(day)] = tonumber(spent) end
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
      if fields.days then
        local at = string.match(e.event or '', '"at":(%d+)') or string.match(entry[1], '^%d+')
        local day = isCount(e.day) and tonumber(e.day) or dayOf(at)
        spentByDay[day] = (spentByDay[day] or 0) + tonumber(e.cost)
      end
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
if fields.days then
  local days = {}
  for day, spent in pairs(spentByDay) do days[#days + 1] = string.format('%.0f:%.0f', day, spent) end
  highest.days = table.concat(days, ' ')
  fields.days = highest.days
end
if #entries == maxEntries then
  local reply = {'more', entries[#entries][1]}
  for name in pairs(highest) do
    reply[#reply + 1] = name
    reply[#reply + 1] = fields[name]
  end
  return reply
end

-- The total reserved by its durable jobs is stored and updated with every change, and so is that of each day.
local held, reservedByDay = {}, {}
local heldFields = redis.call('HGETALL', jobsHeld)
for i = 1, #heldFields, 2 do
  held[heldFields[i]] = heldFields[i + 1]
  local day = string.match(heldFields[i], '^day:(%d+)$')
  if day then reservedByDay[tonumber(day)] = tonumber(heldFields[i + 1]) end
end
local reserved, freeHeld = tonumber(held.cost or '0'), tonumber(held.free or '0')
local prefix = accountId .. ' '
for _, value in ipairs(redis.call('HVALS', reservations)) do
  if string.sub(value, 1, #prefix) == prefix then
    local cost, isFree, admittedAt = string.match(value, '^%S+ (%d+) (%d) (%d+)')
    local day = dayOf(admittedAt)
    reserved = reserved + tonumber(cost)
    reservedByDay[day] = (reservedByDay[day] or 0) + tonumber(cost)
    freeHeld = freeHeld + tonumber(isFree)
  end
end

-- Fills in the sums of the account's budgets, which are passed without them: `amount period`.
local today = dayOf(redis.call('TIME')[1] * 1000)
for _, name in ipairs({'bud', 'obud'}) do
  if fields[name] then
    local amount, period = string.match(fields[name], '^(%d+) (%a)')
    local start = startOfPeriod(period, today)
    local function sumOfPeriod(byDay)
      local sum = 0
      for day, nano in pairs(byDay) do
        if startOfPeriod(period, day) == start then sum = sum + nano end
      end
      return sum
    end
    fields[name] = string.format('%s %s %.0f %.0f %.0f', amount, period, start, sumOfPeriod(spentByDay),
      sumOfPeriod(reservedByDay))
  end
end
fields.days = nil
if mode == 'budgets' then
  for _, name in ipairs({'bud', 'obud'}) do
    if fields[name] then redis.call('HSET', account, name, fields[name]) else redis.call('HDEL', account, name) end
  end
  return {'restored'}
end
fields.res, fields.fres, fields.win = string.format('%.0f', reserved), freeHeld, 0
-- If the account is already in Redis, keep its values of these fields: changes are written to Redis as well and may be
-- newer than the copy read from MongoDB.
local keptFields = {'key', 'rpm', 'mqj', 'wgt', 'ban', 'ext', 'exp', 'adr', 'mod', 'omod', 'adt', 'tpm', 'low'}
local current = redis.call('HMGET', account, unpack(keptFields))
for i, name in ipairs(keptFields) do fields[name] = current[i] or fields[name] end
redis.call('DEL', window, tokenWindow)
for name, value in pairs(fields) do redis.call('HSET', account, name, value) end
return {'restored'}
