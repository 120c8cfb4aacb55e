-- Settles requests of one shard, at least one of which is a durable job.

-- include 'settlement.lua'

local prefix = string.match(reservations, '^(.*)reservations$')

-- include '../jobs/job-functions.lua'

local jobs = {}

-- Returns the reservation of a job if this attempt still owns it.
function jobs.findReservation(job, id)
  local status, attempt, hold = unpack(redis.call('HMGET', recordOf(job.account, id), 'st', 'n', 'hold'))
  if attempt ~= job.attempt or (status ~= 'q' and status ~= 'a') or not hold then return nil end
  return job.account .. ' ' .. hold
end

function jobs.dropLease(job, id) dropLease(job.account, id) end

function jobs.releaseReserved(job, cost, isFree, admittedAt)
  changeReserved(job.account, cost, isFree, admittedAt, -1)
end

function jobs.endJob(job, id, cost, isFree)
  endJob(job.account, id, job.to, job.code, job.message, cost, isFree)
  if job.details ~= '' then redis.call('HSET', recordOf(job.account, id), 'fd', job.details) end
end

return settleAll(jobs)
