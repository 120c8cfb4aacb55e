-- Compares a code with the mailed one. Deletes the challenge when the code is right, and at the last wrong attempt. If
-- the purpose or subject differs, the challenge is treated as unknown: the code is not compared, so the attempt reveals
-- nothing about it, and no attempt is used up, so nobody can invalidate another user's code. The MACs need not be
-- compared in constant time, because a caller cannot choose or predict them.
--
-- Replies {'right', sealed}, {'wrong'} or {'unknown'}.

local challenge = KEYS[1] -- hash: the code and what it is for
local mac = ARGV[1] -- of the code to compare
local maxAttempts = tonumber(ARGV[2]) -- after which the challenge is deleted
local subject = ARGV[3] -- what the code must be bound to

local stored = redis.call('HMGET', challenge, 'purpose', 'subject', 'sealed', 'mac')
local storedPurpose, storedSubject, sealed, storedMac = unpack(stored)
if not storedPurpose or storedSubject ~= subject then return {'unknown'} end
local isExpected = false
for eachArg = 3, #ARGV - 1 do
  local purpose = ARGV[eachArg + 1] -- one of those that the code may be for
  isExpected = isExpected or purpose == storedPurpose
end
if not isExpected then return {'unknown'} end

local attempts = redis.call('HINCRBY', challenge, 'attempts', 1)
local isRight = storedMac == mac
if isRight or attempts >= maxAttempts then redis.call('DEL', challenge) end
if isRight then return {'right', sealed} end
return {'wrong'}
