-- Functions for batches. `prefix`, which scripts define before they include this file, is the prefix of all keys of a
-- shard. An account's script touches only keys of the account's shard and builds their names from `prefix` and the ids
-- that it finds.
--
-- A batch's lines are in its input file. A worker takes a slice of them: the lines that begin within a range of bytes.
-- Lines that no worker has taken yet are only a position in the file, so a batch takes the same memory however many lines
-- it has.
--
-- A batch's record is a hash: `st` status, `op` operation, `q` queue, `m` model that most lines name, `tm`
-- model whose turns it takes, `at` creation time,
-- `wi` end of its window, `in` its input file, `key` that file's object, `size` its bytes, `lines` its lines, `cur` the
-- position of the lines that no worker has taken, `sb` bytes of a slice, `ns` how many slices were made, `why` the code of
-- all remaining lines if they are not run any more, `left` how many lines are not settled and `lt` the queue and model
-- under which they are counted, `ok` and `bad` how many lines have succeeded and failed, `cost` and
-- `res` what they have cost and what is reserved for them (nano-roubles), `max` the most that they may cost, `pt` `ct`
-- `cr` `rt` prompt, completion, cached and reasoning tokens, `prices` at its creation as JSON, `of` and `ef` the files
-- with its results, `fl` for how long those are kept (s), `errors` why it fails as JSON, `ip` the address of its caller,
-- `meta` its metadata as JSON, `url` and `pu` its webhook and the public URL of the gateway, `wh` state of the webhook,
-- and the time of each status, `t:` and the status. `sum:` and a model, as JSON, is the sum of its settled lines.
--
-- A slice is a field of a hash: `from to attempt worker deaths step reserved done`. `step` numbers its settlements, and
-- `done` tells which of its lines are settled, as its workers write it.
-- luacheck: read globals anyModel batchLifetimeMs recordSlackMs sliceLeaseMs

-- include '../files/file-functions.lua'
-- include '../../money/budgets.lua'

local function batchOf(accountId, id) return prefix .. 'batch:' .. accountId .. ':' .. id end
local function slicesOf(accountId, id) return prefix .. 'batch-slices:' .. accountId .. ':' .. id end

-- Slices that a worker has lost or handed back.
local function returnedOf(accountId, id) return prefix .. 'batch-returned:' .. accountId .. ':' .. id end

-- The account's batches for one model that have lines which no worker has.
local function waitingOf(accountId, queue, model)
  return prefix .. 'batches-waiting:' .. accountId .. ':' .. queue .. ':' .. model
end

local endedStatuses = {completed = true, failed = true, expired = true, cancelled = true}

-- Counts batches by status, and lines of unfinished batches by queue and model. Ended batches are never taken away again.
local function changeTotal(field, by)
  if by ~= 0 then redis.call('HINCRBY', prefix .. 'batch-totals', field, whole(by)) end
end

local function setStatus(batch, status)
  local before = redis.call('HGET', batch, 'st')
  if before then changeTotal('status:' .. before, -1) end
  changeTotal('status:' .. status, 1)
  redis.call('HSET', batch, 'st', status, 't:' .. status, whole(nowMs))
end

local function readSlice(accountId, id, number)
  local text = redis.call('HGET', slicesOf(accountId, id), number)
  if not text then return nil end
  local from, to, attempt, worker, deaths, step, reserved, done =
    string.match(text, '^(%d+) (%d+) (%d+) (%S+) (%d+) (%d+) (%d+) (%S*)$')
  return {from = from, to = to, attempt = attempt, worker = worker, deaths = tonumber(deaths), step = tonumber(step),
    reserved = tonumber(reserved), done = done}
end

local function writeSlice(accountId, id, number, slice)
  redis.call('HSET', slicesOf(accountId, id), number, table.concat({slice.from, slice.to, slice.attempt, slice.worker,
    slice.deaths, slice.step, whole(slice.reserved), slice.done}, ' '))
end

-- Counts the lines of a new batch as not settled.
local function addLines(batch, queue, model)
  local lines = redis.call('HGET', batch, 'lines')
  redis.call('HSET', batch, 'left', lines, 'lt', queue .. ' ' .. model)
  changeTotal('lines:' .. queue .. ' ' .. model, tonumber(lines))
end

-- Takes settled lines away from those that are not; all of them without a number.
local function takeLines(batch, count)
  local left, line = unpack(redis.call('HMGET', batch, 'left', 'lt'))
  if not left then return end
  count = count or tonumber(left)
  if count == 0 then return end
  redis.call('HINCRBY', batch, 'left', -count)
  changeTotal('lines:' .. line, -count)
end

-- Returns the slice if this attempt still owns it.
local function findHeld(accountId, id, number, attempt)
  local slice = readSlice(accountId, id, number)
  if slice and slice.attempt == attempt and slice.worker ~= '-' then return slice end
end

local function leaseMember(accountId, id, number) return accountId .. ' ' .. id .. ' ' .. number end

local function addToWaiting(accountId, id, queue, model, createdAt)
  if redis.call('ZADD', waitingOf(accountId, queue, model), createdAt, id) == 0 then return end
  redis.call('SADD', prefix .. 'batch-lines', accountId .. ' ' .. queue .. ' ' .. model)
end

local function removeFromWaiting(accountId, id, queue, model)
  local waiting = waitingOf(accountId, queue, model)
  if redis.call('ZREM', waiting, id) == 1 and redis.call('EXISTS', waiting) == 0 then
    redis.call('SREM', prefix .. 'batch-lines', accountId .. ' ' .. queue .. ' ' .. model)
  end
end

local function weightOf(accountId) return redis.call('HGET', prefix .. 'account:' .. accountId, 'wgt') or '1' end

-- Lets the batch's lines be taken again, if there are any that no worker has.
local function wake(accountId, id, batch)
  local queue, model, createdAt, cursor, size =
    unpack(redis.call('HMGET', batch, 'q', 'tm', 'at', 'cur', 'size'))
  redis.call('ZREM', prefix .. 'batch-pauses', accountId .. ' ' .. id)
  if tonumber(cursor) < tonumber(size) or redis.call('EXISTS', returnedOf(accountId, id)) == 1 then
    addToWaiting(accountId, id, queue, model, createdAt)
    return {accountId, id, queue, model, weightOf(accountId)}
  end
end

-- Keeps workers from taking its lines for a while.
local function pause(accountId, id, batch, forMs)
  local queue, model = unpack(redis.call('HMGET', batch, 'q', 'tm'))
  removeFromWaiting(accountId, id, queue, model)
  redis.call('ZADD', prefix .. 'batch-pauses', nowMs + forMs, accountId .. ' ' .. id)
end

-- Adds money (negative to subtract) to what the account has reserved, in its record and in the sums of its durable work.
local function changeReserved(accountId, batch, by)
  if by == 0 then return end
  local account = prefix .. 'account:' .. accountId
  if redis.call('EXISTS', account) == 1 then redis.call('HINCRBY', account, 'res', whole(by)) end
  local held = prefix .. 'jobs-held:' .. accountId
  redis.call('HINCRBY', held, 'cost', whole(by))
  -- Lines that were reserved by an earlier release are missing from this sum. See also endBatch.
  if redis.call('HINCRBY', held, 'lines', whole(by)) < 0 then redis.call('HSET', held, 'lines', 0) end
  redis.call('HINCRBY', batch, 'res', whole(by))
end

-- Takes the slice from its worker, which has died or hands it back. Its reservation ends.
local function returnSlice(accountId, id, batch, number, slice)
  redis.call('ZREM', prefix .. 'batch-leases', leaseMember(accountId, id, number))
  changeReserved(accountId, batch, -slice.reserved)
  slice.reserved, slice.worker = 0, '-'
  writeSlice(accountId, id, number, slice)
  redis.call('RPUSH', returnedOf(accountId, id), number)
end

-- Appends one row per model to the request log. They cost nothing: the slices have been charged.
local function logBatch(accountId, id, batch)
  local createdAt, address, prices = unpack(redis.call('HMGET', batch, 'at', 'ip', 'prices'))
  prices = cjson.decode(prices)
  local models = {}
  local fields = redis.call('HGETALL', batch)
  for i = 1, #fields, 2 do
    local model = string.match(fields[i], '^sum:(.+)$')
    if model then models[#models + 1] = {model = model, sum = cjson.decode(fields[i + 1])} end
  end
  table.sort(models, function(one, other) return one.model < other.model end)
  local account = prefix .. 'account:' .. accountId
  for i, entry in ipairs(models) do
    local sum, requestId = entry.sum, i == 1 and id or id .. ':' .. entry.model
    local event = {
      v = 1, requestId = requestId, accountId = accountId, model = entry.model, at = tonumber(createdAt),
      durationMs = math.max(0, nowMs - tonumber(createdAt)), success = sum.ok > 0, responseCode = 200,
      errorCode = cjson.null, details = sum.ok + sum.bad .. ' lines called the model, ' .. sum.bad .. ' of them failed',
      userIp = address, promptTokens = sum.pt, cacheReadTokens = sum.cr, cacheWriteTokens = sum.cw,
      completionTokens = sum.ct, counted = sum.counted == 1, images = sum.images, imageQuality = cjson.null,
      imageSize = cjson.null, characters = sum.chars, billedMs = sum.ms,
      priceVersion = prices[entry.model] and prices[entry.model].version or 'unknown', user = cjson.null,
      lines = sum.ok + sum.bad, vendorCostNano = sum.vc,
    }
    local ordinal = redis.call('HINCRBY', account, 'charges', 1)
    redis.call('XADD', prefix .. 'ledger', '*', 'kind', 'charge', 'account', accountId, 'id', requestId, 'cost', '0',
      'shortfall', '0', 'free', '0', 'ordinal', ordinal, 'total', sum.cost, 'event', cjson.encode(event))
  end
end

-- Ends a batch that has no slices any more.
local function endBatch(accountId, id, batch, status)
  local member = accountId .. ' ' .. id
  local queue, model, input, outputs, errors, url =
    unpack(redis.call('HMGET', batch, 'q', 'tm', 'in', 'of', 'ef', 'url'))
  redis.call('ZREM', prefix .. 'batch-windows', member)
  redis.call('ZREM', prefix .. 'batch-pauses', member)
  local open = prefix .. 'batches-open:' .. accountId
  redis.call('ZREM', open, id)
  -- Workers of an earlier release, which may run at the same time, do not change this sum. Without it, what they released
  -- would be missing from all budgets for ever.
  if redis.call('EXISTS', open) == 0 then redis.call('HDEL', prefix .. 'jobs-held:' .. accountId, 'lines') end
  redis.call('UNLINK', slicesOf(accountId, id), returnedOf(accountId, id))
  removeFromWaiting(accountId, id, queue, model)
  takeLines(batch)
  redis.call('HDEL', batch, 'left', 'lt')
  logBatch(accountId, id, batch)
  if outputs then finishFile(accountId, outputs) end
  if errors then finishFile(accountId, errors) end
  if input then releaseFile(accountId, input) end
  if status == 'completed' then redis.call('HSETNX', batch, 't:finalizing', whole(nowMs)) end
  setStatus(batch, status)
  redis.call('HDEL', batch, 'prices')
  redis.call('ZADD', prefix .. 'batches-ended', nowMs + batchLifetimeMs, member)
  redis.call('PEXPIRE', batch, batchLifetimeMs + recordSlackMs)
  if url then redis.call('ZADD', prefix .. 'batch-hooks', nowMs, member) end
end

local statusOfReason = {batch_cancelled = 'cancelled', batch_expired = 'expired'}

-- Ends the batch if all of its lines are settled. Returns whether it has ended.
local function endIfDone(accountId, id, batch)
  local status, cursor, size, why, errors = unpack(redis.call('HMGET', batch, 'st', 'cur', 'size', 'why', 'errors'))
  if endedStatuses[status] then return true end
  if tonumber(cursor) < tonumber(size) or redis.call('EXISTS', slicesOf(accountId, id)) == 1 then return false end
  if errors then
    -- Its input is lost, so nobody knows the lines that have no result.
    local lines, succeeded, failed = unpack(redis.call('HMGET', batch, 'lines', 'ok', 'bad'))
    local lost = tonumber(lines) - tonumber(succeeded) - tonumber(failed)
    redis.call('HINCRBY', batch, 'bad', lost)
    redis.call('HINCRBY', batch, 'nr', lost)
    endBatch(accountId, id, batch, 'failed')
    return true
  end
  endBatch(accountId, id, batch, statusOfReason[why] or 'completed')
  return true
end

-- Stops running lines: those that are not settled yet are written to the error file with this code.
local function stopBatch(accountId, id, batch, why)
  if redis.call('HSETNX', batch, 'why', why) == 0 then return end
  local member = accountId .. ' ' .. id
  redis.call('ZREM', prefix .. 'batch-windows', member)
  -- Lines that are not run need no model, which may be gone.
  local queue, model = unpack(redis.call('HMGET', batch, 'q', 'tm'))
  removeFromWaiting(accountId, id, queue, model)
  redis.call('HSET', batch, 'tm', anyModel)
  if why == 'batch_cancelled' then setStatus(batch, 'cancelling')
  else redis.call('HSETNX', batch, 't:in_progress', whole(nowMs)) setStatus(batch, 'finalizing') end
  return wake(accountId, id, batch)
end

-- The workers that have slices of the batch.
local function listWorkers(accountId, id)
  local workers, seen = {}, {}
  for _, text in ipairs(redis.call('HVALS', slicesOf(accountId, id))) do
    local worker = string.match(text, '^%d+ %d+ %d+ (%S+)')
    if worker ~= '-' and not seen[worker] then
      seen[worker] = true
      workers[#workers + 1] = worker
    end
  end
  return workers
end
