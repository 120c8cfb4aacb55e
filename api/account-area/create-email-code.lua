-- Stores a code that is about to be mailed.

local challenge = KEYS[1] -- hash: the code and what it is for
local purpose = ARGV[1] -- of the code
local subject = ARGV[2] -- what the code is bound to
local sealed = ARGV[3] -- purpose, subject and address, encrypted
local mac = ARGV[4] -- of the code
local lifetime = ARGV[5] -- seconds

redis.call('HSET', challenge, 'purpose', purpose, 'subject', subject, 'sealed', sealed, 'mac', mac, 'attempts', 0)
redis.call('EXPIRE', challenge, lifetime)
