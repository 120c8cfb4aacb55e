-- Deletes a file of an account. Its objects stay until no batch reads it. Replies 1, or 0 if there is no such file.

local prefix = KEYS[1] -- of the keys of the account's shard
local accountId = ARGV[1] -- of the account
local id = ARGV[2] -- of the file

-- include 'file-functions.lua'

if not isFileVisible(accountId, id) then return 0 end
dropFile(accountId, id)
return 1
