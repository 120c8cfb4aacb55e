-- Finds out what is due in a shard. Replies {expired, trashed}: 1 or 0 for whether files have expired, and keys of
-- objects to delete.
-- luacheck: read globals maxTrashed

local prefix = KEYS[1] -- of the keys of the shard

-- include '../../platform/redis/clock.lua'

local expired = redis.call('ZRANGE', prefix .. 'file-times', '-inf', nowMs, 'BYSCORE', 'LIMIT', 0, 1)
return {#expired, redis.call('ZRANGE', prefix .. 'file-trash', '-inf', nowMs, 'BYSCORE', 'LIMIT', 0, maxTrashed)}
