-- Stops running lines of a batch: those that are not settled yet are written to the error file. Does nothing if they are
-- stopped already.

local prefix = KEYS[1] -- of the keys of the account's shard
local accountId = ARGV[1] -- of the account
local id = ARGV[2] -- of the batch
local why = ARGV[3] -- code of the remaining lines

-- include '../../shared/work/batches/batch-functions.lua'

local batch = batchOf(accountId, id)
local status = redis.call('HGET', batch, 'st')
if status and not endedStatuses[status] then stopBatch(accountId, id, batch, why) end
