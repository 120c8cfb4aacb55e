-- Reads a file. Replies {fields, segments}: names and values of its record, and the entries of its segments. Replies
-- {{}, {}} if there is no such file.

local prefix = KEYS[1] -- of the keys of the account's shard
local accountId = ARGV[1] -- of the account
local id = ARGV[2] -- of the file
local withSegments = ARGV[3] -- '1' to reply its segments
local withHidden = ARGV[4] -- '1' to reply also a file that was deleted or has expired while a batch reads it

-- include 'file-functions.lua'

if withHidden ~= '1' and not isFileVisible(accountId, id) then return {{}, {}} end
local segments = withSegments == '1' and redis.call('LRANGE', segmentsOf(accountId, id), 0, -1) or {}
return {redis.call('HGETALL', fileOf(accountId, id)), segments}
