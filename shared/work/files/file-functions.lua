-- Stub, replaced by the branch of the Files API.
local function fileOf(accountId, id) return prefix .. 'file:' .. accountId .. ':' .. id end
local function useFile(accountId, id)
  if redis.call('EXISTS', fileOf(accountId, id)) == 0 then return false end
  redis.call('HINCRBY', fileOf(accountId, id), 'uses', 1)
  return true
end
local function releaseFile(accountId, id) redis.call('HINCRBY', fileOf(accountId, id), 'uses', -1) end
local function createGrowingFile(accountId, id, name, keptMs, createdAt)
  redis.call('HSET', fileOf(accountId, id), 'name', name, 'growing', 1, 'kept', keptMs, 'at', createdAt)
end
local function appendToFile(accountId, id, key, bytes)
  redis.call('RPUSH', prefix .. 'file-segments:' .. accountId .. ':' .. id, key .. ' ' .. bytes)
end
local function finishFile(accountId, id) redis.call('HDEL', fileOf(accountId, id), 'growing') end
