-- Replaces a stored value for its remaining lifetime. An empty value deletes it. If the previous value does not have
-- the expected length, another process has changed it, and it stays unchanged.
--
-- Replies 'stored', 'changed' or 'overtaken'.

local key = KEYS[1] -- string: the value
local counter = KEYS[2] -- hash: counts the account's stored bytes
local job = KEYS[3] -- hash: the job; the value again if the request is none
local value = ARGV[1] -- to store
local expectedBytes = tonumber(ARGV[2]) -- length of the previous value; '' for any
local attempt = ARGV[3] -- at the job; '' if the request is none, or if the output of a past attempt is replaced

-- include '../../money/stored-bytes.lua'
-- include 'fence.lua'

if isOvertaken(job, attempt) then return 'overtaken' end
local before = redis.call('STRLEN', key)
if expectedBytes and before ~= expectedBytes then return 'changed' end
if before == 0 and value == '' then return 'stored' end
local expiresAt = redis.call('EXPIRETIME', key)
changeStoredBytes(counter, expiresAt, -before)
if value == '' then
  redis.call('UNLINK', key)
else
  redis.call('SET', key, value, 'EXAT', expiresAt)
  changeStoredBytes(counter, expiresAt, #value)
end
return 'stored'
