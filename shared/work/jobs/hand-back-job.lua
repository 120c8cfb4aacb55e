-- Returns a taken job to its old position when its worker stops or cannot run it. Replies the weight of the account,
-- 'cancelled' if the worker must end the job, or 'gone' if the job has ended or another worker has it.

local prefix = KEYS[1] -- of the keys of the account's shard
local accountId = ARGV[1] -- of the account
local id = ARGV[2] -- of the job
local attempt = ARGV[3] -- of the worker

-- include 'job-functions.lua'

local record = recordOf(accountId, id)
if not isHeldBy(record, attempt) then return 'gone' end
local isCancelled, cancelAt = unpack(redis.call('HMGET', record, 'cx', 'ca'))
if isCancelled == '1' or isOverdue(cancelAt) then return 'cancelled' end
return tonumber(requeue(accountId, id))
