-- Corrects an account's count. Never removes the account, because a job may have been added since the number was read;
-- only a turn that found no job removes it.

-- include 'job-turns.lua'

local model = ARGV[1] -- of the jobs
local accountId = ARGV[2] -- of the account
local weight = tonumber(ARGV[3]) -- of the account
local counted = tonumber(ARGV[4]) -- how many jobs are on the account's list

local queue = openQueue(model)
local record, waiting = readOrCreate(queue, accountId), counted
if record.waiting > 0 then waiting = math.max(1, waiting) end
if waiting == 0 then return end
record.weight, record.taken = weight, 0
write(queue, accountId, record, waiting)
