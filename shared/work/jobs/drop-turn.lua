-- Removes a waiting job of an account.

-- include 'job-turns.lua'

local model = ARGV[1] -- of the job
local accountId = ARGV[2] -- of the account

local queue = openQueue(model)
local record = read(queue, accountId)
if record and record.waiting > 0 then write(queue, accountId, record, record.waiting - 1) end
