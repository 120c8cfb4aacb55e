-- Like admit.lua, for a request whose response is stored: under an Idempotency-Key, as a resumable stream, or both.
-- Checks also that no earlier request used the same Idempotency-Key, and that the account has not stored too much.
--
-- Also replies {'attached', limit, remaining, resetSeconds, requestId}: an earlier request had the same key and body,
-- and this one gets its response, which the claim counts; {'conflict', limit, remaining, resetSeconds}: its body was another;
-- {'stored_too_much', limit, remaining, resetSeconds}.

-- include 'admission.lua'
-- include 'stored-bytes.lua'

local storedBytes = KEYS[5] -- hash: counts the account's stored bytes
local claim = KEYS[6] -- hash: the claim of the Idempotency-Key; the counter again if the caller sent none
local resumable = KEYS[7] -- string: marks a resumable stream; the counter again if this is none
local bodyHash = ARGV[16] -- of the request; '' without an Idempotency-Key
local claimHash = ARGV[17] -- of the Idempotency-Key
local lifetime = tonumber(ARGV[18]) -- of the claim and the mark, in seconds
local maxStoredBytes = tonumber(ARGV[19]) -- of the account

local function checkClaim(claimedBody, claimedId)
  if claimedBody ~= bodyHash then return replyWith('conflict') end
  redis.call('HINCRBY', claim, 'replays', 1)
  return replyWith('attached', claimedId)
end

local function checkStoredBytes()
  if storedBytesExceed(storedBytes, maxStoredBytes) then return replyWith('stored_too_much') end
end

local rejection = checkCaller()
if rejection then return rejection end
local claimed = {}
if claim ~= storedBytes then claimed = redis.call('HMGET', claim, 'body', 'id') end
if claimed[1] then return takeMinute() or checkClaim(claimed[1], claimed[2]) end
rejection = checkLedger() or takeMinute() or checkStoredBytes()
if rejection then return rejection end
local reply = reserve(claim ~= storedBytes and ' ' .. claimHash or '')
if reply[1] ~= 'ok' then return reply end
if claim ~= storedBytes then
  redis.call('HSET', claim, 'body', bodyHash, 'id', id)
  redis.call('EXPIRE', claim, lifetime)
end
if resumable ~= storedBytes then redis.call('SET', resumable, 1, 'EX', lifetime) end
return reply
