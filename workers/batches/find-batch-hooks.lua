-- Finds batches whose webhooks must be queued. Replies account, id, URL and status of each.
-- luacheck: read globals maxPerScript

local prefix = KEYS[1] -- of the keys of the shard

local hooks, due = prefix .. 'batch-hooks', {}
for _, member in ipairs(redis.call('ZRANGE', hooks, 0, maxPerScript - 1)) do
  local accountId, id = string.match(member, '^(%S+) (%S+)$')
  local url, status = unpack(redis.call('HMGET', prefix .. 'batch:' .. accountId .. ':' .. id, 'url', 'st'))
  if url then due[#due + 1] = {accountId, id, url, status} else redis.call('ZREM', hooks, member) end
end
return due
