-- Reads the account's batches with these ids. Replies them as list-batches.lua does.

local prefix = KEYS[1] -- of the keys of the account's shard
local accountId = ARGV[1] -- of the account

-- include 'read-batches.lua'

local ids = {}
for eachArg = 1, #ARGV - 1 do
  local id = ARGV[eachArg + 1] -- of a batch
  ids[#ids + 1] = id
end
return readBatches(ids)
