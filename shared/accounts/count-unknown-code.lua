-- Counts unknown codes within a window that starts with the first one. Replies their number.

local count = KEYS[1] -- counter of the account
local windowSeconds = ARGV[1] -- length of the window

local codes = redis.call('INCR', count)
if codes == 1 then redis.call('EXPIRE', count, windowSeconds) end
return codes
