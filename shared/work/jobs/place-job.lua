-- Turns an admitted request into a durable job, atomically: its reservation becomes the job's, and the job starts to
-- wait. From then on only the job ends the reservation.
--
-- The job's times are from Redis's clock, which all readers use. The job's creation time is the time at which its
-- request was admitted, as recorded in the reservation. Its timeout starts then.
--
-- Replies {'ok', weight, rank, createdAtMs, deadlineAtMs, nowMs}, {'too_many_jobs', unfinishedJobs}, {'too_many_kept'},
-- {'too_many_bytes'}, {'queue_full'}, or {'gone'} if the reservation or the body is.
-- luacheck: read globals claimSlackSeconds defaultMaxQueued maxBytesPerAccount maxBytesPerShard maxJobsPerAccount
-- luacheck: read globals maxWaitingPerShard

local prefix = KEYS[1] -- of the keys of the account's shard
local reservations = KEYS[2] -- hash: reservations of the shard by request
local accountId = ARGV[1] -- of the account
local id = ARGV[2] -- of the request and the job
local queue = ARGV[3] -- of the job
local model = ARGV[4] -- of the job
local operation = ARGV[5] -- of the job
local timeoutMs = tonumber(ARGV[6]) -- from the admission to the deadline
local bytes = tonumber(ARGV[7]) -- size of the body
local format = ARGV[8] -- of vectors; '' for the default
local url = ARGV[9] -- of the webhook; '' if there is none
local body = ARGV[10] -- data for the worker; '' if it is large and already stored
local lifetime = ARGV[11] -- of the body, in seconds
local cancelAfterMs = ARGV[12] -- from the admission until the job is cancelled unless it has ended; '' for never
local events = ARGV[13] -- that the webhook is called for: 's' start, 'e' end
local publicUrl = ARGV[14] -- of the gateway, for webhooks

-- include 'job-functions.lua'

local record = recordOf(accountId, id)
local maxQueued, weight = unpack(redis.call('HMGET', prefix .. 'account:' .. accountId, 'mqj', 'wgt'))
local lists = prefix .. 'jobs:' .. accountId .. ':'
local unfinished = redis.call('ZCARD', lists .. 'q') + redis.call('ZCARD', lists .. 'a')
if unfinished >= tonumber(maxQueued or defaultMaxQueued) then return {'too_many_jobs', unfinished} end
if redis.call('ZCARD', lists .. 'all') >= maxJobsPerAccount then return {'too_many_kept'} end
local storedBytes = bytes + recordBytes(url)
local heldBytes = tonumber(redis.call('HGET', prefix .. 'jobs-held:' .. accountId, 'bytes') or '0')
if heldBytes + storedBytes > maxBytesPerAccount then return {'too_many_bytes'} end
local waitingInShard, bytesInShard = unpack(redis.call('HMGET', prefix .. 'job-totals', queue, 'bytes'))
if tonumber(waitingInShard or '0') >= maxWaitingPerShard
  or tonumber(bytesInShard or '0') + storedBytes > maxBytesPerShard then return {'queue_full'} end
local reservation = redis.call('HGET', reservations, id)
if not reservation then return {'gone'} end

local hold = string.match(reservation, '^%S+ (.*)$')
local cost, isFree, admittedAt = string.match(hold, '^(%d+) (%d) (%d+)')
local deadline = whole(tonumber(admittedAt) + timeoutMs)
local bodyKey = prefix .. 'job-body:' .. accountId .. ':' .. id
if body ~= '' then redis.call('SET', bodyKey, body, 'EX', lifetime)
elseif redis.call('EXPIRE', bodyKey, lifetime) == 0 then return {'gone'} end
redis.call('HDEL', reservations, id)
changeReserved(accountId, cost, isFree, admittedAt, 1)
changeBytes(accountId, storedBytes)
-- Keep the claim of the Idempotency-Key for as long as the job may take. Ending the job then keeps or deletes it.
local claim = claimOf(accountId, id, hold)
if claim then redis.call('EXPIRE', claim, lifetime + claimSlackSeconds) end
redis.call('HSET', record, 'st', 'q', 'op', operation, 'q', queue, 'm', model, 'at', admittedAt, 'dl', deadline,
  'n', 0, 'hold', hold, 'bytes', bytes, 'log', 'q' .. admittedAt)
if format ~= '' then redis.call('HSET', record, 'fm', format) end
if url ~= '' then redis.call('HSET', record, 'url', url, 'we', events, 'pu', publicUrl) end
if cancelAfterMs ~= '' then
  local cancelAt = whole(tonumber(admittedAt) + tonumber(cancelAfterMs))
  redis.call('HSET', record, 'ca', cancelAt, 'cd', cancelAfterMs)
  redis.call('ZADD', prefix .. 'job-cancel-times', cancelAt, accountId .. ' ' .. id)
end
redis.call('HSET', prefix .. 'job-owners', id, accountId)
redis.call('ZADD', lists .. 'q', admittedAt, id)
redis.call('ZADD', lists .. 'all', admittedAt, id)
addToWaitingList(accountId, id, queue, model, admittedAt)
redis.call('ZADD', prefix .. 'job-deadlines', deadline, accountId .. ' ' .. id)
local rank = redis.call('ZRANK', waitingOf(accountId, queue, model), id)
return {'ok', tonumber(weight or '1'), rank, admittedAt, deadline, nowMs}
