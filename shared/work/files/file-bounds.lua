-- Checks the bounds of an account's files. Needs `prefix`, `accountId`, `bytes`, `maxFiles` and `maxBytes`.

-- include 'file-functions.lua'

-- Returns a reply of a script if the account cannot have one more file of that length, otherwise nil.
local function findRefusal()
  local count, held = readFilesHeld(accountId)
  if count >= maxFiles then return {'too_many_files', count, held} end
  if held + bytes > maxBytes then return {'too_many_bytes', count, held} end
end
