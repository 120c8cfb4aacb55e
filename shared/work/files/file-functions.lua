-- Functions for files of the API. `prefix`, which scripts define before they include this file, is the prefix of all
-- keys of a shard. An account's script touches only keys of the account's shard and builds their names from `prefix` and
-- the ids that it finds.
--
-- A file's record is a hash: `fn` file name, `p` purpose, `b` bytes, `k` key of its object, `v` verdict of the check as
-- JSON, `m` time of its last segment (ms), `u` how many unfinished batches read it, `gone` deleted or expired while it was read, and `g` it still grows.
-- Its creation and its expiry are in its id. A file without `k` consists of segments: objects whose contents follow each
-- other in the order of a list, each entry `key bytes`.
--
-- Objects of files that no longer exist are in the trash, a sorted set, from which workers delete them. An object is in
-- the trash before it is written, with a time a day away, so that it is deleted if no file ever gets it.

-- include '../../platform/redis/clock.lua'
-- include '../../platform/redis/whole.lua'

local function fileOf(accountId, id) return prefix .. 'file:' .. accountId .. ':' .. id end

local function segmentsOf(accountId, id) return prefix .. 'file-segments:' .. accountId .. ':' .. id end

-- An id is `file-`, twelve hexadecimal digits of the time at which the file expires (ms), six of its lifetime (s), and
-- random characters.
local function fileExpiresAt(id) return tonumber(string.sub(id, 6, 17), 16) end

local function fileCreatedAt(id) return fileExpiresAt(id) - tonumber(string.sub(id, 18, 23), 16) * 1000 end

-- Lets workers delete an object now.
local function trashObject(key) redis.call('ZADD', prefix .. 'file-trash', nowMs, key) end

-- Takes an object from the trash: it belongs to a file, or was never written.
local function forgetObject(key) redis.call('ZREM', prefix .. 'file-trash', key) end

-- Whether an object that is in the trash cannot have been deleted yet.
local function isStillStored(key)
  local dueAt = redis.call('ZSCORE', prefix .. 'file-trash', key)
  return dueAt and tonumber(dueAt) > nowMs
end

-- Returns the number of the account's files, and their bytes.
local function readFilesHeld(accountId)
  local count, bytes = unpack(redis.call('HMGET', prefix .. 'files-held:' .. accountId, 'count', 'bytes'))
  return tonumber(count or '0'), tonumber(bytes or '0')
end

local function changeFilesHeld(accountId, count, bytes)
  local held = prefix .. 'files-held:' .. accountId
  if count ~= 0 and redis.call('HINCRBY', held, 'count', count) <= 0 then redis.call('DEL', held)
  elseif bytes ~= 0 then redis.call('HINCRBY', held, 'bytes', whole(bytes)) end
end

local function listFile(accountId, id, purpose)
  local createdAt = whole(fileCreatedAt(id))
  redis.call('ZADD', prefix .. 'files:' .. accountId .. ':all', createdAt, id)
  redis.call('ZADD', prefix .. 'files:' .. accountId .. ':' .. purpose, createdAt, id)
  redis.call('ZADD', prefix .. 'file-times', whole(fileExpiresAt(id)), accountId .. ' ' .. id)
end

-- Creates a file that is one object. The account's bounds are not checked.
local function createFile(accountId, id, name, purpose, key, bytes, verdict)
  local record = fileOf(accountId, id)
  redis.call('HSET', record, 'fn', name, 'p', purpose, 'b', whole(bytes), 'k', key)
  if verdict ~= '' then redis.call('HSET', record, 'v', verdict) end
  forgetObject(key)
  listFile(accountId, id, purpose)
  changeFilesHeld(accountId, 1, bytes)
end

-- Creates an empty file of segments, which grows until `finishFile`. The account's bounds are not checked.
local function createGrowingFile(accountId, id, name, purpose)
  redis.call('HSET', fileOf(accountId, id), 'fn', name, 'p', purpose, 'b', 0, 'g', 1)
  listFile(accountId, id, purpose)
  changeFilesHeld(accountId, 1, 0)
end

-- Appends an object to a growing file. Returns the file's length; nil if the file is gone or no longer grows, and the
-- object is in the trash.
local function appendSegment(accountId, id, key, bytes)
  local record = fileOf(accountId, id)
  if redis.call('HEXISTS', record, 'g') == 0 then
    trashObject(key)
    return nil
  end
  redis.call('RPUSH', segmentsOf(accountId, id), key .. ' ' .. whole(bytes))
  forgetObject(key)
  redis.call('HSET', record, 'm', whole(nowMs))
  changeFilesHeld(accountId, 0, bytes)
  return redis.call('HINCRBY', record, 'b', whole(bytes))
end

-- Ends the growth of a file. Returns its length; nil if it is gone.
local function finishFile(accountId, id)
  local record = fileOf(accountId, id)
  redis.call('HDEL', record, 'g')
  local bytes = redis.call('HGET', record, 'b')
  return bytes and tonumber(bytes) or nil
end

-- Whether the account's caller can see the file.
local function isFileVisible(accountId, id)
  if fileExpiresAt(id) <= nowMs then return false end
  local bytes, isGone = unpack(redis.call('HMGET', fileOf(accountId, id), 'b', 'gone'))
  return bytes and not isGone
end

-- Deletes the record of a file, and lets workers delete its objects.
local function destroyFile(accountId, id)
  local record, segments = fileOf(accountId, id), segmentsOf(accountId, id)
  local key, bytes = unpack(redis.call('HMGET', record, 'k', 'b'))
  if not bytes then return end
  if key then trashObject(key) end
  for _, segment in ipairs(redis.call('LRANGE', segments, 0, -1)) do trashObject(string.match(segment, '^%S+')) end
  redis.call('UNLINK', record, segments)
  changeFilesHeld(accountId, -1, -tonumber(bytes))
end

-- Hides a file. Its objects stay until no batch reads it.
local function dropFile(accountId, id)
  local record = fileOf(accountId, id)
  local purpose, uses = unpack(redis.call('HMGET', record, 'p', 'u'))
  redis.call('ZREM', prefix .. 'file-times', accountId .. ' ' .. id)
  if not purpose then return end
  redis.call('ZREM', prefix .. 'files:' .. accountId .. ':all', id)
  redis.call('ZREM', prefix .. 'files:' .. accountId .. ':' .. purpose, id)
  if tonumber(uses or '0') > 0 then redis.call('HSET', record, 'gone', 1)
  else destroyFile(accountId, id) end
end

-- Keeps the objects of a file for one more batch. Returns whether the file exists.
local function holdFile(accountId, id)
  if not isFileVisible(accountId, id) then return false end
  redis.call('HINCRBY', fileOf(accountId, id), 'u', 1)
  return true
end

-- Undoes `holdFile`.
local function releaseFile(accountId, id)
  local record = fileOf(accountId, id)
  if redis.call('EXISTS', record) == 0 then return end
  if redis.call('HINCRBY', record, 'u', -1) > 0 then return end
  redis.call('HDEL', record, 'u')
  if redis.call('HEXISTS', record, 'gone') == 1 then destroyFile(accountId, id) end
end
