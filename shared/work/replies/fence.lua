-- Stops late output of a durable job.

-- Whether an attempt is overtaken: another attempt owns the job by now, or the job has ended. Its late output must not
-- replace the output that the caller was charged for. `attempt` is '' for a request that is no job. In a job's record,
-- `st` is the status (`q` queued, `a` active) and `n` the current attempt.
local function isOvertaken(job, attempt)
  if attempt == '' then return false end
  local status, current = unpack(redis.call('HMGET', job, 'st', 'n'))
  return status and (current ~= attempt or (status ~= 'q' and status ~= 'a'))
end
