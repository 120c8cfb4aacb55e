-- Functions for the queue of one model. An account's record holds how many of its jobs wait, the serial number of the
-- job it added last (`adds`), its weight, and how many turns it has taken that are still pending: not settled yet. Its
-- start tag in the sorted set of turns is the virtual time at which its next job may start. The queue's virtual time is
-- the start tag of the last turn taken.
--
-- When an account starts to wait, its start tag is the queue's virtual time, or the end of its last turn if that is
-- later. Otherwise accounts with one job at a time would always be first.
-- luacheck: read globals emptyQueueMs jobsAddedPrefix turnUnits

local models = KEYS[1] -- sorted set: models with waiting jobs by their position in the rotation
local index = KEYS[2] -- hash: counters of all models
local turnsPrefix = KEYS[3] -- of each model's sorted set: accounts with waiting jobs by their start tag
local idlePrefix = KEYS[4] -- of each model's sorted set: accounts whose last turn ends in the future
local accountsPrefix = KEYS[5] -- of each model's hash: record by account

-- include '../../platform/redis/whole.lua'

local function costOf(weight) return math.floor(turnUnits / weight + 0.5) end

local function openQueue(model)
  return {
    model = model, turns = turnsPrefix .. model, idle = idlePrefix .. model, accounts = accountsPrefix .. model,
    time = tonumber(redis.call('HGET', index, 'time:' .. model) or '0'),
  }
end

local function read(queue, accountId)
  local record = redis.call('HGET', queue.accounts, accountId) or ''
  local waiting, adds, weight, taken = string.match(record, '^(%d+) (%d+) (%d+) (%d+)$')
  if not waiting then return nil end
  return {waiting = tonumber(waiting), adds = adds, weight = tonumber(weight), taken = tonumber(taken)}
end

local function readOrCreate(queue, accountId)
  return read(queue, accountId) or {waiting = 0, adds = '0', weight = 1, taken = 0}
end

-- Moves the model behind the others.
local function rotate(model)
  redis.call('ZADD', models, redis.call('HINCRBY', index, 'rotations', 1), model)
end

-- Called when the account starts to wait.
local function join(queue, accountId)
  local tag = math.max(queue.time, tonumber(redis.call('ZSCORE', queue.idle, accountId) or '0'))
  redis.call('ZREM', queue.idle, accountId)
  redis.call('ZADD', queue.turns, whole(tag), accountId)
  -- Wakes workers that found no job. The index is named after the queue.
  redis.call('SPUBLISH', jobsAddedPrefix .. string.match(index, '[^:]+$'), '')
  if not redis.call('ZSCORE', models, queue.model) then
    rotate(queue.model)
    redis.call('PERSIST', queue.accounts)
    redis.call('PERSIST', queue.idle)
  end
end

-- Called when the account has no more waiting jobs.
local function leave(queue, accountId)
  local tag = tonumber(redis.call('ZSCORE', queue.turns, accountId) or '0')
  redis.call('ZREM', queue.turns, accountId)
  if tag > queue.time then redis.call('ZADD', queue.idle, whole(tag), accountId) end
end

-- Stores the record and everything that depends on the number of waiting jobs.
local function write(queue, accountId, record, waiting)
  local before = record.waiting
  record.waiting = waiting
  if waiting == 0 and record.taken == 0 then
    redis.call('HDEL', queue.accounts, accountId)
  else
    local text = string.format('%.0f %s %.0f %.0f', waiting, record.adds, record.weight, record.taken)
    redis.call('HSET', queue.accounts, accountId, text)
  end
  if waiting ~= before then redis.call('HINCRBY', index, 'waiting:' .. queue.model, waiting - before) end
  if before == 0 and waiting > 0 then join(queue, accountId) end
  if before > 0 and waiting == 0 then leave(queue, accountId) end
  if waiting == 0 and redis.call('EXISTS', queue.turns) == 0 then
    queue.isEmpty = true
    redis.call('ZREM', models, queue.model)
    redis.call('HSET', index, 'waiting:' .. queue.model, 0)
    redis.call('PEXPIRE', queue.accounts, emptyQueueMs)
    redis.call('PEXPIRE', queue.idle, emptyQueueMs)
  end
end
