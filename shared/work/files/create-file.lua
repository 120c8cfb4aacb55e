-- Creates the record of an uploaded file.
--
-- Replies {'ok'}, or {'too_many_files', files, bytes} or {'too_many_bytes', files, bytes} with what the account has; the
-- object is then in the trash.

local prefix = KEYS[1] -- of the keys of the account's shard
local accountId = ARGV[1] -- of the account
local id = ARGV[2] -- of the file
local name = ARGV[3] -- of the file
local purpose = ARGV[4] -- of the file
local key = ARGV[5] -- of its object
local bytes = tonumber(ARGV[6]) -- of the file
local verdict = ARGV[7] -- of the check, as JSON; '' if it was not checked
local maxFiles = tonumber(ARGV[8]) -- of the account
local maxBytes = tonumber(ARGV[9]) -- of the account's files together

-- include 'file-bounds.lua'

local refusal = findRefusal()
if refusal then
  trashObject(key)
  return refusal
end
createFile(accountId, id, name, purpose, key, bytes, verdict)
return {'ok'}
