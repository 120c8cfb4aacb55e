-- Counts the items of ready queues, and reads the models and admission times of the first and the last ones.
--
-- Replies for each queue {items, blanks, read}: the number of its items, how many of those that were read are blank, and a
-- flat list of model and admission time (ms) of the others.

local maxRead = tonumber(ARGV[1]) -- items of each end that are read

local queues = {}
for eachKey = 0, #KEYS - 1, 1 do
  local list = KEYS[eachKey + 1] -- list: the queue
  local length = redis.call('LLEN', list)
  local ranges = {{0, math.min(length, maxRead) - 1}, {math.max(maxRead, length - maxRead), length - 1}}
  local blanks, read = 0, {}
  for _, range in ipairs(ranges) do
    if range[1] <= range[2] then
      for _, item in ipairs(redis.call('LRANGE', list, range[1], range[2])) do
        if item == '' then blanks = blanks + 1
        else
          -- The request comes before any text of its caller.
          read[#read + 1] = string.match(item, '"model":"([^"]*)"') or ''
          read[#read + 1] = string.match(item, '"admittedAtMs":(%d+)') or '0'
        end
      end
    end
  end
  queues[#queues + 1] = {length, blanks, read}
end
return queues
