-- Counts the items of ready queues, and reads the models and admission times of the first and the last ones.
--
-- Replies for each queue {items, blanks, read}: the number of its items, how many of those that were read are blank, and a
-- flat list of model and admission time (ms) of the others.

local maxRead = tonumber(ARGV[1]) -- items of each end that are read
local maxBytes = tonumber(ARGV[2]) -- of each end that are read, until no more items are: Redis copies items whole

local queues = {}
for eachKey = 0, #KEYS - 1, 1 do
  local list = KEYS[eachKey + 1] -- list: the queue
  local length = redis.call('LLEN', list)
  local blanks, read, bytes = 0, {}, 0
  local function readItem(index)
    local item = redis.call('LINDEX', list, index)
    bytes = bytes + #item
    if item == '' then blanks = blanks + 1
    else
      -- The request comes before any text of its caller.
      read[#read + 1] = string.match(item, '"model":"([^"]*)"') or ''
      read[#read + 1] = string.match(item, '"admittedAtMs":(%d+)') or '0'
    end
  end
  local first = 0
  while first < math.min(length, maxRead) and bytes < maxBytes do
    readItem(first)
    first = first + 1
  end
  local last = length - 1
  bytes = 0
  while last >= math.max(first, length - maxRead) and bytes < maxBytes do
    readItem(last)
    last = last - 1
  end
  queues[#queues + 1] = {length, blanks, read}
end
return queues
