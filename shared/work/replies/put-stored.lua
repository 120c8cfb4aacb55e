-- Sets a stored value, whether or not there is one. Replies 'stored', 'full' or 'overtaken'.

local key = KEYS[1] -- string: the value
local counter = KEYS[2] -- hash: counts the account's stored bytes
local job = KEYS[3] -- hash: the job; the value again if the request is none
local value = ARGV[1] -- to store
local lifetime = tonumber(ARGV[2]) -- in seconds
local maxStoredBytes = tonumber(ARGV[3]) -- of the account
local attempt = ARGV[4] -- at the job; '' if the request is none

-- include '../../money/stored-bytes.lua'
-- include 'fence.lua'

if isOvertaken(job, attempt) then return 'overtaken' end
if storedBytesExceed(counter, maxStoredBytes - #value) then return 'full' end
local before = redis.call('STRLEN', key)
if before > 0 then changeStoredBytes(counter, redis.call('EXPIRETIME', key), -before) end
local expiresAt = endOfBucket(redis.call('TIME')[1] + lifetime)
redis.call('SET', key, value, 'EXAT', expiresAt)
changeStoredBytes(counter, expiresAt, #value)
return 'stored'
