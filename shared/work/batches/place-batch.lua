-- Creates a batch from an admitted request. Its reservation, which showed that the balance can pay for the batch, ends: each
-- slice reserves for itself.
--
-- Replies {'ok', createdAtMs, weight}, {'too_many_batches', unfinished}, {'too_many_kept'}, {'no_file'} if the input file is
-- gone, {'retried', id} of the batch that retries the same batch already, or {'gone'} if the reservation is.
-- luacheck: read globals maxBatchesPerAccount claimLifetimeSeconds

local prefix = KEYS[1] -- of the keys of the account's shard
local reservations = KEYS[2] -- hash: reservations of the shard by request
local accountId = ARGV[1] -- of the account
local id = ARGV[2] -- of the batch
local requestId = ARGV[3] -- of the request that creates it
local maxUnfinished = tonumber(ARGV[4]) -- batches of the account
local windowMs = tonumber(ARGV[5]) -- in which the batch must end
local input = ARGV[6] -- id of the input file
local queue = ARGV[7] -- of the batch
local model = ARGV[8] -- whose turns the batch takes
local failure = ARGV[9] -- the faults of the input file as JSON, with which the batch fails; '' if there are none
local fieldsText = ARGV[10] -- of the record, as a JSON object of texts
local retryOf = ARGV[11] -- id of the batch whose failed lines it has; '' if they are new

-- include 'batch-functions.lua'

local open, all = prefix .. 'batches-open:' .. accountId, prefix .. 'batches:' .. accountId
local unfinished = redis.call('ZCARD', open)
if unfinished >= maxUnfinished then return {'too_many_batches', unfinished} end
if redis.call('ZCARD', all) >= maxBatchesPerAccount then return {'too_many_kept'} end
local retried = retryOf ~= '' and redis.call('HGET', batchOf(accountId, retryOf), 'ra')
if retried then return {'retried', retried} end
local reservation = redis.call('HGET', reservations, requestId)
if not reservation then return {'gone'} end
if not holdFile(accountId, input) then return {'no_file'} end
local held, isFree, createdAt, claimHash = string.match(reservation, '^%S+ (%d+) (%d) (%d+) <%d+ ?(%S*)')
redis.call('HDEL', reservations, requestId)
local account = prefix .. 'account:' .. accountId
if isFree == '1' then redis.call('HINCRBY', account, 'fres', -1)
elseif held ~= '0' then
  redis.call('HINCRBY', account, 'res', '-' .. held)
  releaseFromBudgets(account, createdAt, held)
end
if claimHash ~= '' then
  redis.call('EXPIRE', prefix .. 'claim:' .. accountId .. ':' .. claimHash, claimLifetimeSeconds)
end
local batch = batchOf(accountId, id)
for field, value in pairs(cjson.decode(fieldsText)) do redis.call('HSET', batch, field, value) end
local window = whole(tonumber(createdAt) + windowMs)
redis.call('HSET', batch, 'at', createdAt, 'wi', window, 'in', input, 'q', queue, 'tm', model, 'cur', 0, 'ns', 0, 'ok', 0,
  'bad', 0, 'cost', 0, 'res', 0, 'pt', 0, 'ct', 0, 'cr', 0, 'rt', 0)
if retryOf ~= '' then redis.call('HSET', batchOf(accountId, retryOf), 'ra', id) end
setStatus(batch, 'validating')
redis.call('HSET', prefix .. 'job-owners', id, accountId)
redis.call('ZADD', all, createdAt, id)
redis.call('ZADD', open, createdAt, id)
if failure ~= '' then
  redis.call('HSET', batch, 'errors', failure)
  endBatch(accountId, id, batch, 'failed')
else
  addLines(batch, queue, model)
  redis.call('ZADD', prefix .. 'batch-windows', window, accountId .. ' ' .. id)
  addToWaiting(accountId, id, queue, model, createdAt)
end
return {'ok', createdAt, weightOf(accountId)}
