-- Stops a batch whose input is lost: no more of its lines are taken. When it ends, lines without a result count as failed.
-- Doing so again changes nothing.
--
-- Replies {'ok'}, or {'gone'} if another worker has the slice or the batch has ended.

local prefix = KEYS[1] -- of the keys of the account's shard
local accountId = ARGV[1] -- of the account
local id = ARGV[2] -- of the batch
local number = ARGV[3] -- of the slice that cannot be read
local attempt = ARGV[4] -- that owns the slice
local failure = ARGV[5] -- the errors of the batch as JSON

-- include '../../shared/work/batches/batch-functions.lua'

if not findHeld(accountId, id, number, attempt) then return {'gone'} end
local batch = batchOf(accountId, id)
redis.call('HSET', batch, 'errors', failure, 'cur', redis.call('HGET', batch, 'size'))
stopBatch(accountId, id, batch, 'input_lost')
return {'ok'}
