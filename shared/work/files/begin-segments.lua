-- Begins segments of files: puts their objects in the trash, with a time at which they are deleted unless a file has them.
-- luacheck: read globals maxUploadMs

local prefix = KEYS[1] -- of the keys of the account's shard

-- include '../../platform/redis/clock.lua'
-- include '../../platform/redis/whole.lua'

for eachArg = 0, #ARGV - 1 do
  local key = ARGV[eachArg + 1] -- of an object
  redis.call('ZADD', prefix .. 'file-trash', whole(nowMs + maxUploadMs), key)
end
