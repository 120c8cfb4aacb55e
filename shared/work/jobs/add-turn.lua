-- Adds a waiting job of an account.

-- include 'job-turns.lua'

local model = ARGV[1] -- of the job
local accountId = ARGV[2] -- of the account
local weight = tonumber(ARGV[3]) -- of the account

local queue = openQueue(model)
local record = readOrCreate(queue, accountId)
record.adds = whole(redis.call('HINCRBY', index, 'adds', 1))
record.weight = weight
write(queue, accountId, record, record.waiting + 1)
