-- Ends the pauses that are over, and the windows of batches. Replies account, id, queue, model and weight of each batch
-- whose lines can be taken, and the workers that have some of its lines.
-- luacheck: read globals maxPerScript

local prefix = KEYS[1] -- of the keys of the shard

-- include '../../shared/work/batches/batch-functions.lua'

local woken = {}
local function listDue(name)
  return redis.call('ZRANGE', prefix .. name, '-inf', nowMs, 'BYSCORE', 'LIMIT', 0, maxPerScript)
end
for _, member in ipairs(listDue('batch-pauses')) do
  local accountId, id = string.match(member, '^(%S+) (%S+)$')
  local batch = batchOf(accountId, id)
  redis.call('ZREM', prefix .. 'batch-pauses', member)
  if redis.call('EXISTS', batch) == 1 then woken[#woken + 1] = wake(accountId, id, batch) end
end
for _, member in ipairs(listDue('batch-windows')) do
  local accountId, id = string.match(member, '^(%S+) (%S+)$')
  local batch = batchOf(accountId, id)
  redis.call('ZREM', prefix .. 'batch-windows', member)
  if redis.call('EXISTS', batch) == 1 then
    local line = stopBatch(accountId, id, batch, 'batch_expired')
    if line then
      for _, worker in ipairs(listWorkers(accountId, id)) do line[#line + 1] = worker end
      woken[#woken + 1] = line
    end
  end
end
return woken
