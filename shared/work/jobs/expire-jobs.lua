-- Ends jobs that did not start in time.
--
-- Replies {checked, lists}: how many deadlines had passed, and account, queue and model of each job that ended.
-- luacheck: read globals maxPerScript

local prefix = KEYS[1] -- of the keys of the shard
local deadlineMessage = ARGV[1] -- for the callers of the jobs

-- include 'job-functions.lua'

local deadlines, lists = prefix .. 'job-deadlines', {}
local late = redis.call('ZRANGE', deadlines, '-inf', nowMs, 'BYSCORE', 'LIMIT', 0, maxPerScript)
for _, member in ipairs(late) do
  local accountId, id = string.match(member, '^(%S+) (%S+)$')
  redis.call('ZREM', deadlines, member)
  local status, queue, model = unpack(redis.call('HMGET', recordOf(accountId, id), 'st', 'q', 'm'))
  if status == 'q' then
    endWithoutCharge(accountId, id, 'f', 'deadline_exceeded', deadlineMessage)
    lists[#lists + 1] = {accountId, queue, model}
  end
end
return {#late, lists}
