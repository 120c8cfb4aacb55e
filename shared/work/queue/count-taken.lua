-- Replies how many items have been taken from a ready queue.

local list = KEYS[1] -- list: the queue
local pushed = KEYS[2] -- counter of the items ever pushed to it

-- include '../../platform/redis/ticketed-list.lua'

return countTaken(list, pushed)
