-- Settles a turn. An account's count is never below the number of jobs that really wait, except when a job is dropped
-- long after it was taken from its list. Jobs are put on their lists before they are added here, and taken off before
-- they are dropped here. If a count is too high, some turns find no job. Such turns are given back, and the last of
-- them removes the account.

-- include 'job-turns.lua'

local model = ARGV[1] -- of the turn
local accountId = ARGV[2] -- of the turn
local weight = tonumber(ARGV[3]) -- of the account when it took the turn
local adds = ARGV[4] -- serial number of the job that the account had added last
local remaining = tonumber(ARGV[5]) -- how many jobs are still on the account's list
local isUsed = ARGV[6] -- '1' if the turn found a job

local queue = openQueue(model)
local record = read(queue, accountId) or {waiting = 0, adds = adds, weight = weight, taken = 0}
record.taken = math.max(0, record.taken - 1)
if isUsed ~= '1' then
  for _, key in ipairs({queue.turns, queue.idle}) do
    local tag = tonumber(redis.call('ZSCORE', key, accountId) or '-1')
    if tag >= 0 then redis.call('ZADD', key, whole(math.max(queue.time, tag - costOf(weight))), accountId) end
  end
end
local waiting = record.waiting
if remaining > 0 then waiting = math.max(waiting, remaining - record.taken)
elseif record.adds == adds then waiting = 0
elseif isUsed ~= '1' then waiting = waiting + 1 end
write(queue, accountId, record, waiting)
