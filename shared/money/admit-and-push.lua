-- Like admit.lua. If the request gets all units that it asked for, also pushes its item to a queue, in the same step.

-- include 'admission.lua'
-- include '../platform/redis/ticketed-list.lua'

local list = KEYS[5] -- list: the queue
local pushed = KEYS[6] -- counter of the items ever pushed to it
local listBound = tonumber(ARGV[16]) -- maximum number of items
local item = ARGV[17] -- to push

local reply = checkCaller() or checkLedger() or takeMinute() or reserve('')
local outcome, units = reply[1], reply[7]
if outcome == 'ok' and units == requested then
  reply[8] = pushTicketed(list, pushed, listBound, item)
end
return reply
