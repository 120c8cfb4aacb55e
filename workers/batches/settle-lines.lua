-- Settles lines of a slice whose results are stored: debits what they cost, ends the reservation of these lines, appends a
-- usage event per model, adds the results to the batch's files, and counts the lines. Ends the batch with its last lines.
--
-- Only the attempt that owns the slice may settle, and each step of it only once. A cost above the reservation is debited
-- only from money that nothing else has reserved; the rest is the shortfall. Callers limit the cost of each line to its
-- maximum.
--
-- The objects with the results are in the trash, and leave it. If their time has come, they may be deleted already, so that
-- the lines must run again.
--
-- Replies {'settled', isEnded, why}, {'gone'} if another worker has the slice or the objects may be deleted, or {'unknown'}
-- if the account is not in Redis.

local prefix = KEYS[1] -- of the keys of the account's shard
local minutes = KEYS[2] -- hash: the account's requests by minute of the hour
local accountId = ARGV[1] -- of the account
local id = ARGV[2] -- of the batch
local number = ARGV[3] -- of the slice
local attempt = ARGV[4] -- that owns the slice
local step = tonumber(ARGV[5]) -- number of this settlement of the slice
local done = ARGV[6] -- which lines of the slice are settled with this step
local isLast = ARGV[7] -- '1' if all lines of the slice are
local release = tonumber(ARGV[8]) -- nano-roubles that were reserved for these lines
local reasoningTokens = tonumber(ARGV[9]) -- of these lines
local outputFile = ARGV[10] -- id of the output file if the batch has none yet
local outputKey = ARGV[11] -- object with the lines for the output file; '' if there are no lines at all
local outputBytes = tonumber(ARGV[12]) -- of that object; 0 if it was not stored, because there are none for the output file
local errorFile = ARGV[13] -- id of the error file if the batch has none yet
local errorKey = ARGV[14] -- object with the lines for the error file, likewise
local errorBytes = tonumber(ARGV[15]) -- of that object, likewise
local notRun = tonumber(ARGV[16]) -- of these lines: how many were not run

-- include '../../shared/work/batches/batch-functions.lua'
-- include '../../shared/work/settlement/recent-minutes.lua'

local batch = batchOf(accountId, id)
local slice = findHeld(accountId, id, number, attempt)
if not slice then return {'gone'} end
local why = redis.call('HGET', batch, 'why') or ''
if step <= slice.step then return {'settled', 0, why} end
for key, bytes in pairs({[outputKey] = outputBytes, [errorKey] = errorBytes}) do
  if bytes > 0 and not isStillStored(key) then return {'gone'} end
end
local account = prefix .. 'account:' .. accountId
local balance, reserved, isRestricted = unpack(redis.call('HMGET', account, 'bal', 'res', 'ext'))
if not balance then return {'unknown'} end
local budgets = isRestricted and openBudgets(account)
release = math.min(release, slice.reserved)
changeReserved(accountId, batch, -release)
balance, reserved = tonumber(balance), tonumber(reserved) - release
local left = budgets and budgets.findLeft()
local payable = math.max(release, math.min(balance - reserved, left or balance))
local total, settled = 0, 0
for eachArg = 16, #ARGV - 1, 15 do
  local model = ARGV[eachArg + 1] -- of these lines
  local exactCost = tonumber(ARGV[eachArg + 2]) -- nano-roubles
  local event = ARGV[eachArg + 3] -- the usage event as JSON
  local eventId = ARGV[eachArg + 4] -- of the usage event
  local succeeded = tonumber(ARGV[eachArg + 5]) -- lines
  local failed = tonumber(ARGV[eachArg + 6]) -- lines
  local promptTokens = tonumber(ARGV[eachArg + 7]) -- of these lines
  local cacheReadTokens = tonumber(ARGV[eachArg + 8]) -- of these lines
  local cacheWriteTokens = tonumber(ARGV[eachArg + 9]) -- of these lines
  local completionTokens = tonumber(ARGV[eachArg + 10]) -- of these lines
  local isCounted = tonumber(ARGV[eachArg + 11]) -- 1 if any of their usage is our own estimate
  local images = tonumber(ARGV[eachArg + 12]) -- of these lines
  local characters = tonumber(ARGV[eachArg + 13]) -- of these lines
  local billedMs = tonumber(ARGV[eachArg + 14]) -- of these lines
  local vendorCost = ARGV[eachArg + 15] -- nano-roubles that vendors charge for these lines; '' if unknown
  local cost = math.min(exactCost, payable)
  payable, total = payable - cost, total + cost
  settled = settled + succeeded + failed
  redis.call('HINCRBY', batch, 'ok', succeeded)
  redis.call('HINCRBY', batch, 'bad', failed)
  redis.call('HINCRBY', batch, 'pt', promptTokens)
  redis.call('HINCRBY', batch, 'ct', completionTokens)
  redis.call('HINCRBY', batch, 'cr', cacheReadTokens)
  -- Lines that reached no model are only counted.
  if event ~= '' then
    local field = 'sum:' .. model
    local known = redis.call('HGET', batch, field)
    local sum = known and cjson.decode(known)
      or {ok = 0, bad = 0, pt = 0, cr = 0, cw = 0, ct = 0, counted = 0, images = 0, chars = 0, ms = 0, cost = '0', vc = '0'}
    sum.ok, sum.bad = sum.ok + succeeded, sum.bad + failed
    sum.pt, sum.ct = sum.pt + promptTokens, sum.ct + completionTokens
    sum.cr, sum.cw = sum.cr + cacheReadTokens, sum.cw + cacheWriteTokens
    sum.counted = math.max(sum.counted, isCounted)
    sum.images, sum.chars, sum.ms = sum.images + images, sum.chars + characters, sum.ms + billedMs
    sum.cost = whole(tonumber(sum.cost) + cost)
    -- Once it is unknown for some lines, it stays unknown.
    sum.vc = sum.vc and vendorCost ~= '' and whole(tonumber(sum.vc) + vendorCost) or nil
    redis.call('HSET', batch, field, cjson.encode(sum))
    local entry = redis.call('XADD', prefix .. 'ledger', '*', 'kind', 'charge', 'account', accountId, 'id', eventId,
      'cost', whole(cost), 'shortfall', whole(exactCost - cost), 'free', '0', 'ordinal', '0', 'event', event,
      unpack(budgets and dayOf(string.match(event, '"at":(%d+)') or nowMs) ~= budgets.today and {'day', budgets.today} or {}))
    noteMinute(minutes, entry, succeeded + failed, cost)
  end
end
takeLines(batch, settled)
redis.call('HSET', account, 'bal', whole(balance - total))
if budgets and total > 0 then budgets.change(budgets.today, 0, total) end
redis.call('HINCRBY', batch, 'cost', whole(total))
redis.call('HINCRBY', batch, 'rt', reasoningTokens)
if notRun > 0 then redis.call('HINCRBY', batch, 'nr', notRun) end
local function addResults(field, file, suffix, key, bytes)
  if bytes == 0 then
    forgetObject(key)
    return
  end
  if redis.call('HSETNX', batch, field, file) == 1 then
    createGrowingFile(accountId, file, id .. suffix, 'batch_output')
  end
  appendSegment(accountId, redis.call('HGET', batch, field), key, bytes)
end
addResults('of', outputFile, '_output.jsonl', outputKey, outputBytes)
addResults('ef', errorFile, '_error.jsonl', errorKey, errorBytes)
if slice.done ~= done then slice.deaths = 0 end
slice.step, slice.done, slice.reserved = step, done, slice.reserved - release
if isLast ~= '1' then
  writeSlice(accountId, id, number, slice)
  return {'settled', 0, why}
end
changeReserved(accountId, batch, -slice.reserved)
redis.call('HDEL', slicesOf(accountId, id), number)
redis.call('ZREM', prefix .. 'batch-leases', leaseMember(accountId, id, number))
return {'settled', endIfDone(accountId, id, batch) and 1 or 0, why}
