-- Drops files that have expired. Replies how many.
-- luacheck: read globals maxPerScript

local prefix = KEYS[1] -- of the keys of the shard

-- include 'file-functions.lua'

local due = redis.call('ZRANGE', prefix .. 'file-times', '-inf', nowMs, 'BYSCORE', 'LIMIT', 0, maxPerScript)
for _, member in ipairs(due) do
  local accountId, id = string.match(member, '^(%S+) (%S+)$')
  dropFile(accountId, id)
end
return #due
