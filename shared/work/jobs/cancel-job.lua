-- Ends a waiting job. If a worker has the job, records the cancellation request.
--
-- Replies {'cancelled', queue, model}, {'requested', workerId}, {'ended'} or {'unknown'}.

local prefix = KEYS[1] -- of the keys of the account's shard
local accountId = ARGV[1] -- of the account
local id = ARGV[2] -- of the job
local message = ARGV[3] -- for the caller of the job

-- include 'job-functions.lua'

local record = recordOf(accountId, id)
local status, workerId, queue, model = unpack(redis.call('HMGET', record, 'st', 'w', 'q', 'm'))
if not status then return {'unknown'} end
if status ~= 'q' and status ~= 'a' then return {'ended'} end
if workerId then
  redis.call('HSET', record, 'cx', '1')
  return {'requested', workerId}
end
endWithoutCharge(accountId, id, 'c', 'job_cancelled', message)
return {'cancelled', queue, model}
