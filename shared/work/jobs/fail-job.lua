-- Ends a job that cannot run at all, or was cancelled before it could. Does nothing if the job has ended or another
-- worker has it.

local prefix = KEYS[1] -- of the keys of the account's shard
local accountId = ARGV[1] -- of the account
local id = ARGV[2] -- of the job
local attempt = ARGV[3] -- of the worker
local status = ARGV[4] -- the new one: 'f' or 'c'
local code = ARGV[5] -- why it failed
local message = ARGV[6] -- for the caller

-- include 'job-functions.lua'

if isHeldBy(recordOf(accountId, id), attempt) then endWithoutCharge(accountId, id, status, code, message) end
