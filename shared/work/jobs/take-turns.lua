-- Takes one turn from each model that has capacity, then the next from each, starting with the model that was served
-- longest ago. If held jobs are given, skips an account that holds as many jobs as the remaining capacity, which leaves
-- capacity for accounts that start to wait.
--
-- Replies a flat list of the turns: model, account, weight, serial number of the job that the account added last.
-- luacheck: read globals maxVirtualTime

-- include 'job-turns.lua'

local count = tonumber(ARGV[1]) -- maximum number of turns
local capacitiesText = ARGV[2] -- how many jobs the worker can take, by model, as JSON
local heldText = ARGV[3] -- how many jobs it holds, by model and account, as JSON; '' to skip no account

local remaining, capacities = count, cjson.decode(capacitiesText)
local held = heldText ~= '' and cjson.decode(heldText)
local taken, queues = {}, {}

-- Moves all start tags back by the queue's virtual time, so that they stay exact. Needed at most once in several
-- months.
local function rebase(queue)
  for _, key in ipairs({queue.turns, queue.idle}) do
    local entries = redis.call('ZRANGE', key, 0, -1, 'WITHSCORES')
    for i = 1, #entries, 2 do
      local accountId, tag = entries[i], entries[i + 1]
      redis.call('ZADD', key, whole(tag - queue.time), accountId)
    end
  end
  queue.time = 0
end

-- Returns how many turns were taken.
local function takeOne(queue)
  local earliest, accountId, tag
  local at = 0
  repeat
    local entry = redis.call('ZRANGE', queue.turns, at, at, 'WITHSCORES')
    accountId, tag = entry[1], tonumber(entry[2])
    earliest, at = earliest or tag, at + 1
  until not accountId or not held or (queue.held[accountId] or 0) < queue.capacity
  if not accountId then
    queue.isDone = true
    if earliest then return 0 end
    queue.isEmpty = true
    redis.call('ZREM', models, queue.model)
    return 0
  end
  local record = read(queue, accountId)
  -- The record was lost. sync-turns.lua restores the account.
  if not record then
    redis.call('ZREM', queue.turns, accountId)
    return 0
  end
  -- The virtual time becomes the earliest start tag, even if its account was skipped. It never decreases.
  queue.time = math.max(queue.time, earliest)
  if held then queue.held[accountId] = (queue.held[accountId] or 0) + 1 end
  record.taken = record.taken + 1
  redis.call('ZADD', queue.turns, whole(tag + costOf(record.weight)), accountId)
  write(queue, accountId, record, record.waiting - 1)
  for _, value in ipairs({queue.model, accountId, record.weight, record.adds}) do taken[#taken + 1] = value end
  return 1
end

for _, model in ipairs(redis.call('ZRANGE', models, 0, -1)) do
  local queue = {model = model, capacity = capacities[model] or 0, held = held and held[model] or {}}
  if queue.capacity > 0 then queues[#queues + 1] = queue end
end
local opened, visits = {}, 0
while remaining > 0 and #queues > 0 do
  local unfinished = {}
  for _, queue in ipairs(queues) do
    if remaining == 0 then break end
    if not queue.turns then
      for name, value in pairs(openQueue(queue.model)) do queue[name] = value end
      opened[#opened + 1] = queue
    end
    visits = visits + 1
    queue.visit = visits
    local used = takeOne(queue)
    remaining, queue.capacity = remaining - used, queue.capacity - used
    if queue.capacity > 0 and not queue.isDone and not queue.isEmpty then unfinished[#unfinished + 1] = queue end
  end
  queues = unfinished
end
table.sort(opened, function(one, other) return one.visit < other.visit end)
for _, queue in ipairs(opened) do
  if not queue.isEmpty then rotate(queue.model) end
  redis.call('ZREMRANGEBYSCORE', queue.idle, '-inf', whole(queue.time))
  if queue.time > maxVirtualTime then rebase(queue) end
  redis.call('HSET', index, 'time:' .. queue.model, whole(queue.time))
end
return taken
