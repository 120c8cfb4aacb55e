import { redisChannels } from '../redis/redis-keys.ts';
import { turnUnits } from './job-line.ts';

/** How long an empty queue keeps its pending turns, and the start tags that are later than its virtual time. */
const emptyQueueMs = 60_000;

/**
 * Lua functions for the queue of one model, shared by all scripts of job-turns-script. An account's record holds how
 * many of its jobs wait, the serial number of the job it added last (`adds`), its weight, and how many turns it has taken
 * that are still pending: not settled yet. Its start tag in the sorted set of turns is the virtual time at which its next
 * job may start. The queue's virtual time is the start tag of the last turn taken.
 *
 * When an account starts to wait, its start tag is the queue's virtual time, or the end of its last turn if that is
 * later. Otherwise accounts with one job at a time would always be first.
 */
export const jobTurnsLua = `
local models, index = KEYS[1], KEYS[2]
local function text(number) return string.format('%.0f', number) end
local function costOf(weight) return math.floor(${turnUnits} / weight + 0.5) end
local function openQueue(model)
  return {
    model = model, turns = KEYS[3] .. model, idle = KEYS[4] .. model, accounts = KEYS[5] .. model,
    time = tonumber(redis.call('HGET', index, 'time:' .. model) or '0'),
  }
end
local function read(queue, account)
  local entry = redis.call('HGET', queue.accounts, account) or ''
  local waiting, adds, weight, taken = string.match(entry, '^(%d+) (%d+) (%d+) (%d+)$')
  if not waiting then return nil end
  return { waiting = tonumber(waiting), adds = adds, weight = tonumber(weight), taken = tonumber(taken) }
end
-- Moves the model behind the others.
local function rotate(model)
  redis.call('ZADD', models, redis.call('HINCRBY', index, 'rotations', 1), model)
end
-- Called when the account starts to wait.
local function join(queue, account)
  local tag = math.max(queue.time, tonumber(redis.call('ZSCORE', queue.idle, account) or '0'))
  redis.call('ZREM', queue.idle, account)
  redis.call('ZADD', queue.turns, text(tag), account)
  -- Wakes workers that found no job.
  redis.call('SPUBLISH', '${redisChannels.jobsAdded('')}' .. string.match(index, '[^:]+$'), '')
  if not redis.call('ZSCORE', models, queue.model) then
    rotate(queue.model)
    redis.call('PERSIST', queue.accounts)
    redis.call('PERSIST', queue.idle)
  end
end
-- Called when the account has no more waiting jobs.
local function leave(queue, account)
  local tag = tonumber(redis.call('ZSCORE', queue.turns, account) or '0')
  redis.call('ZREM', queue.turns, account)
  if tag > queue.time then redis.call('ZADD', queue.idle, text(tag), account) end
end
-- Stores the record and everything that depends on the number of waiting jobs.
local function write(queue, account, record, waiting)
  local before = record.waiting
  record.waiting = waiting
  if waiting == 0 and record.taken == 0 then
    redis.call('HDEL', queue.accounts, account)
  else
    local entry = string.format('%.0f %s %.0f %.0f', waiting, record.adds, record.weight, record.taken)
    redis.call('HSET', queue.accounts, account, entry)
  end
  if waiting ~= before then redis.call('HINCRBY', index, 'waiting:' .. queue.model, waiting - before) end
  if before == 0 and waiting > 0 then join(queue, account) end
  if before > 0 and waiting == 0 then leave(queue, account) end
  if waiting == 0 and redis.call('EXISTS', queue.turns) == 0 then
    queue.isEmpty = true
    redis.call('ZREM', models, queue.model)
    redis.call('HSET', index, 'waiting:' .. queue.model, 0)
    redis.call('PEXPIRE', queue.accounts, ${emptyQueueMs})
    redis.call('PEXPIRE', queue.idle, ${emptyQueueMs})
  end
end
local function readOrCreate(queue, account)
  return read(queue, account) or { waiting = 0, adds = '0', weight = 1, taken = 0 }
end
`;
