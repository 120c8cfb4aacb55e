-- Reads the account's jobs with these ids. Replies {nowMs, jobs}: the time, and the jobs as JSON (see read-jobs.lua).

local prefix = KEYS[1] -- of the keys of the account's shard
local accountId = ARGV[1] -- of the account

-- include 'read-jobs.lua'

local ids = {}
for eachArg = 1, #ARGV - 1 do
  local id = ARGV[eachArg + 1] -- of a job
  ids[#ids + 1] = id
end
return {readJobs(ids)}
