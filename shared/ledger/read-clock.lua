-- Replies the time in milliseconds of the node that stores the stats, so that the clocks of the machines do not matter.

local shown = KEYS[1] -- hash: any key of the stats; a Cluster finds the node by it

-- include '../platform/redis/clock.lua'

return string.format('%.0f', nowMs)
