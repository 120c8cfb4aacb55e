-- Pushes an item to a ready queue. Replies its ticket, or 0 if the queue is full.

local list = KEYS[1] -- list: the queue
local pushed = KEYS[2] -- counter of the items ever pushed to it
local item = ARGV[1] -- to push
local bound = tonumber(ARGV[2]) -- maximum number of items

-- include '../../platform/redis/ticketed-list.lua'

return pushTicketed(list, pushed, bound, item)
