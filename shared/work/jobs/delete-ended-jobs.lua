-- Deletes jobs that ended a day ago. Replies how many.
-- luacheck: read globals maxPerScript

local prefix = KEYS[1] -- of the keys of the shard

-- include 'job-functions.lua'

local endedJobs = prefix .. 'jobs-ended'
local old = redis.call('ZRANGE', endedJobs, '-inf', nowMs, 'BYSCORE', 'LIMIT', 0, maxPerScript)
for _, member in ipairs(old) do
  local accountId, id = string.match(member, '^(%S+) (%S+)$')
  redis.call('ZREM', endedJobs, member)
  local record = recordOf(accountId, id)
  local queue, url = unpack(redis.call('HMGET', record, 'q', 'url'))
  if queue then
    dropBody(accountId, id)
    changeBytes(accountId, -recordBytes(url or ''))
  end
  for _, name in ipairs({'chat', 'image', 'embedding'}) do
    redis.call('ZREM', prefix .. 'job-failures:' .. name, member)
  end
  redis.call('UNLINK', record)
  redis.call('HDEL', prefix .. 'job-owners', id)
  for _, list in ipairs({'all', 's', 'f', 'c'}) do
    redis.call('ZREM', prefix .. 'jobs:' .. accountId .. ':' .. list, id)
  end
end
return #old
