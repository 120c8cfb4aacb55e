-- Deletes batches that ended long ago. Replies how many.
-- luacheck: read globals maxPerScript

local prefix = KEYS[1] -- of the keys of the shard

-- include '../../shared/work/batches/batch-functions.lua'

local ended = prefix .. 'batches-ended'
local due = redis.call('ZRANGE', ended, '-inf', nowMs, 'BYSCORE', 'LIMIT', 0, maxPerScript)
for _, member in ipairs(due) do
  local accountId, id = string.match(member, '^(%S+) (%S+)$')
  redis.call('ZREM', ended, member)
  redis.call('ZREM', prefix .. 'batches:' .. accountId, id)
  redis.call('UNLINK', batchOf(accountId, id))
  redis.call('HDEL', prefix .. 'job-owners', id)
end
return #due
