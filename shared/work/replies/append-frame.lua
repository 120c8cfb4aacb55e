-- Appends a frame and counts its bytes. Rejects a bounded frame if a limit is reached. Unbounded frames are small.
--
-- Replies {'stored', bytes, isAboveMoveThreshold}: the size of all frames of the request and, for frames that are not
-- deltas, 1 if the account has more in Redis than the threshold; {'full'}; or {'overtaken'}.

local frames = KEYS[1] -- string: frames of the request
local counter = KEYS[2] -- hash: counts the account's stored bytes
local job = KEYS[3] -- hash: the job; the frames again if the request is none
local frame = ARGV[1] -- to append
local isDelta = ARGV[2] -- '1' for a delta
local isBounded = ARGV[3] -- '1' if the frame may be rejected
local lifetime = tonumber(ARGV[4]) -- of the frames, in seconds
local maxBytes = tonumber(ARGV[5]) -- of the request's frames
local maxStoredBytes = tonumber(ARGV[6]) -- of the account
local moveThreshold = tonumber(ARGV[7]) -- bytes of the account, above which responses move out of Redis
local attempt = ARGV[8] -- at the job; '' if the request is none

-- include '../../money/stored-bytes.lua'
-- include 'fence.lua'

if isOvertaken(job, attempt) then return {'overtaken'} end
local before = redis.call('STRLEN', frames)
if isBounded == '1' and (before + #frame > maxBytes or storedBytesExceed(counter, maxStoredBytes - #frame)) then
  return {'full'}
end
local length = redis.call('APPEND', frames, frame)
local expiresAt = before > 0 and redis.call('EXPIRETIME', frames) or -1
if expiresAt < 0 or isDelta ~= '1' then
  local newExpiry = endOfBucket(redis.call('TIME')[1] + lifetime)
  if expiresAt > 0 then changeStoredBytes(counter, expiresAt, -before) end
  redis.call('EXPIREAT', frames, newExpiry)
  changeStoredBytes(counter, newExpiry, length)
else
  changeStoredBytes(counter, expiresAt, #frame)
end
return {'stored', length, isDelta ~= '1' and storedBytesExceed(counter, moveThreshold) and 1 or 0}
