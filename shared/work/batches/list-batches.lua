-- Reads a page of the account's batches, newest first. Replies JSON: of each batch its id and its fields.

local prefix = KEYS[1] -- of the keys of the account's shard
local accountId = ARGV[1] -- of the account
local after = ARGV[2] -- id of the batch before the page; '' for the first page
local count = tonumber(ARGV[3]) -- of the batches

-- include 'read-batches.lua'

local all = prefix .. 'batches:' .. accountId
local from = 0
if after ~= '' then
  local rank = redis.call('ZREVRANK', all, after)
  if not rank then return readBatches({}) end
  from = rank + 1
end
return readBatches(redis.call('ZREVRANGE', all, from, from + count - 1))
