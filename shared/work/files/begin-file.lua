-- Begins a file: checks the account's bounds before it is uploaded, and puts its object in the trash, with a time at
-- which no upload can still run.
--
-- Replies {'ok', nowMs}, or {'too_many_files', files, bytes} or {'too_many_bytes', files, bytes} with what the account
-- has.
-- luacheck: read globals maxUploadMs

local prefix = KEYS[1] -- of the keys of the account's shard
local accountId = ARGV[1] -- of the account
local key = ARGV[2] -- of the object
local bytes = tonumber(ARGV[3]) -- that the file has at least
local maxFiles = tonumber(ARGV[4]) -- of the account
local maxBytes = tonumber(ARGV[5]) -- of the account's files together

-- include 'file-bounds.lua'

local refusal = findRefusal()
if refusal then return refusal end
redis.call('ZADD', prefix .. 'file-trash', whole(nowMs + maxUploadMs), key)
return {'ok', nowMs}
