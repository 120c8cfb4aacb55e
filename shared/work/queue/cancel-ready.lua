-- Blanks a waiting item in place. Removing it would shift the items behind it, and the position of their tickets could
-- no longer be computed. Replies 1, or 0 if a worker has already taken the item.

local list = KEYS[1] -- list: the queue
local pushed = KEYS[2] -- counter of the items ever pushed to it
local ticket = tonumber(ARGV[1]) -- of the item

-- include '../../platform/redis/ticketed-list.lua'

local index = ticket - countTaken(list, pushed) - 1
if index < 0 or index >= redis.call('LLEN', list) then return 0 end
redis.call('LSET', list, index, '')
return 1
