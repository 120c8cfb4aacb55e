-- Takes the next slice of the account's oldest batch for one model: one that another worker has lost or handed back, or
-- the next lines of the file.
--
-- Replies {left, id, number, from, to, attempt, deaths, step, done, why}: how many batches still wait, and the taken
-- slice. `why` is the code of its lines if they must not be run; '' otherwise. Replies only {left} if there was none to
-- take.
-- luacheck: read globals ledgerStreamBound refusedSliceBytes

local prefix = KEYS[1] -- of the keys of the account's shard
local accountId = ARGV[1] -- of the account
local queue = ARGV[2] -- of the batch
local model = ARGV[3] -- of the batch
local workerId = ARGV[4] -- that takes the slice

-- include '../../shared/work/batches/batch-functions.lua'

local waiting = waitingOf(accountId, queue, model)
-- The ledger's stream is full because MongoDB is unavailable. Slices would add to it, so they wait.
if redis.call('XLEN', prefix .. 'ledger') >= ledgerStreamBound then return {redis.call('ZCARD', waiting)} end
local ban, expiresAt = unpack(redis.call('HMGET', prefix .. 'account:' .. accountId, 'ban', 'exp'))
local isExpired = expiresAt and tonumber(expiresAt) <= nowMs

local function makeSlice(batch, why)
  local cursor, size, sliceBytes = unpack(redis.call('HMGET', batch, 'cur', 'size', 'sb'))
  cursor, size = tonumber(cursor), tonumber(size)
  if cursor >= size then return nil end
  local to = math.min(size, cursor + (why and refusedSliceBytes or tonumber(sliceBytes)))
  redis.call('HSET', batch, 'cur', whole(to))
  local number = redis.call('HINCRBY', batch, 'ns', 1)
  return tostring(number), {from = whole(cursor), to = whole(to), attempt = '0', worker = '-', deaths = 0, step = 0,
    reserved = 0, done = ''}
end

for _ = 1, 16 do
  local id = redis.call('ZRANGE', waiting, 0, 0)[1]
  if not id then break end
  local batch = batchOf(accountId, id)
  local status, why, window = unpack(redis.call('HMGET', batch, 'st', 'why', 'wi'))
  if not status or endedStatuses[status] then
    removeFromWaiting(accountId, id, queue, model)
  else
    if not why and ban == '1' then why = 'account_banned'
    elseif not why and isExpired then why = 'key_expired'
    elseif not why and tonumber(window) <= nowMs then why = 'batch_expired' end
    if why then stopBatch(accountId, id, batch, why) end
    why = redis.call('HGET', batch, 'why')
    local slice
    local number = redis.call('LPOP', returnedOf(accountId, id))
    if number then slice = readSlice(accountId, id, number) else number, slice = makeSlice(batch, why) end
    local cursor, size = unpack(redis.call('HMGET', batch, 'cur', 'size'))
    if tonumber(cursor) >= tonumber(size) and redis.call('EXISTS', returnedOf(accountId, id)) == 0 then
      removeFromWaiting(accountId, id, queue, model)
    end
    if slice then
      slice.attempt, slice.worker = whole(tonumber(slice.attempt) + 1), workerId
      writeSlice(accountId, id, number, slice)
      redis.call('ZADD', prefix .. 'batch-leases', nowMs + sliceLeaseMs, leaseMember(accountId, id, number))
      if status == 'validating' and not why then setStatus(batch, 'in_progress') end
      return {redis.call('ZCARD', waiting), id, tonumber(number), tonumber(slice.from), tonumber(slice.to),
        tonumber(slice.attempt), slice.deaths, slice.step, slice.done, why or ''}
    end
  end
end
return {redis.call('ZCARD', waiting)}
