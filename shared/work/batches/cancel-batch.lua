-- Cancels a batch. Lines that run are finished and charged; all others are written to the error file.
--
-- Replies {'unknown'}, {'ended'} if it has ended or is stopping already, or {'cancelled', queue, model, weight, workers…}:
-- the workers that have lines of it. Queue, model and weight are '' if no lines are left that no worker has.

local prefix = KEYS[1] -- of the keys of the account's shard
local accountId = ARGV[1] -- of the account
local id = ARGV[2] -- of the batch

-- include 'batch-functions.lua'

local batch = batchOf(accountId, id)
local status, why = unpack(redis.call('HMGET', batch, 'st', 'why'))
if not status then return {'unknown'} end
if endedStatuses[status] or why then return {'ended'} end
local line = stopBatch(accountId, id, batch, 'batch_cancelled') or {}
local reply = {'cancelled', line[3] or '', line[4] or '', line[5] or ''}
for _, worker in ipairs(listWorkers(accountId, id)) do reply[#reply + 1] = worker end
return reply
