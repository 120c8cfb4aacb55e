-- Finds jobs whose webhooks must be queued: of their start, and of their end. Replies account, id, URL and event of each:
-- 'started', or the letter of the status with which the job ended.
-- luacheck: read globals maxPerScript

local prefix = KEYS[1] -- of the keys of the shard

local due = {}
local function find(hooks, event)
  for _, member in ipairs(redis.call('ZRANGE', hooks, 0, maxPerScript - 1)) do
    local accountId, id = string.match(member, '^(%S+) (%S+)$')
    local url, status = unpack(redis.call('HMGET', prefix .. 'job:' .. accountId .. ':' .. id, 'url', 'st'))
    if url then due[#due + 1] = {accountId, id, url, event or status}
    else redis.call('ZREM', hooks, member) end
  end
end
find(prefix .. 'job-start-hooks', 'started')
find(prefix .. 'job-hooks')
return due
