-- Reads a part of one of the account's lists of jobs, newest first. Replies {total, nowMs, jobs}: the length of the
-- list, the time, and the jobs as JSON (see read-jobs.lua).

local prefix = KEYS[1] -- of the keys of the account's shard
local accountId = ARGV[1] -- of the account
local list = ARGV[2] -- 'all' or a status
local from = ARGV[3] -- index of the first job
local to = ARGV[4] -- index of the last job

-- include 'read-jobs.lua'

local key = prefix .. 'jobs:' .. accountId .. ':' .. list
return {redis.call('ZCARD', key), readJobs(redis.call('ZREVRANGE', key, from, to))}
