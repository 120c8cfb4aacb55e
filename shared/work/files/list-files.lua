-- Reads a part of one of the account's lists of files, by their time of creation. A file that was deleted since it was
-- read can still be the place at which the list continues, because its id tells its time.
--
-- Replies {isMore, last, files}: 1 if more follow, the id after which they do, and {id, name, purpose, bytes} of each
-- file. There may be fewer files than the limit although more follow.

local prefix = KEYS[1] -- of the keys of the account's shard
local accountId = ARGV[1] -- of the account
local list = ARGV[2] -- 'all' or a purpose
local after = ARGV[3] -- id of the file that precedes the part; '' for the start of the list
local order = ARGV[4] -- 'desc' or 'asc'
local limit = tonumber(ARGV[5]) -- files at most

-- include 'file-functions.lua'

local key = prefix .. 'files:' .. accountId .. ':' .. list
local isDescending = order == 'desc'
local from = 0
if after ~= '' then
  local rank = redis.call(isDescending and 'ZREVRANK' or 'ZRANK', key, after)
  local createdAt = whole(fileCreatedAt(after))
  if rank then from = rank + 1
  elseif isDescending then from = redis.call('ZCOUNT', key, '(' .. createdAt, '+inf')
  else from = redis.call('ZCOUNT', key, '-inf', '(' .. createdAt) end
end
local ids = redis.call(isDescending and 'ZREVRANGE' or 'ZRANGE', key, from, from + limit)
local isMore, files = #ids > limit and 1 or 0, {}
if isMore == 1 then ids[#ids] = nil end
for _, id in ipairs(ids) do
  -- Expired files stay in the list until a worker removes them.
  if fileExpiresAt(id) > nowMs then
    local name, purpose, bytes = unpack(redis.call('HMGET', fileOf(accountId, id), 'fn', 'p', 'b'))
    files[#files + 1] = {id, name, purpose, bytes}
  end
end
return {isMore, ids[#ids] or '', files}
