-- Hands back a slice: its worker stops, or cannot go on now. The lines that are not settled run again, by any worker.
--
-- Replies {'gone'}, {'paused'}, or {'returned', queue, model, weight}.

local prefix = KEYS[1] -- of the keys of the account's shard
local accountId = ARGV[1] -- of the account
local id = ARGV[2] -- of the batch
local number = ARGV[3] -- of the slice
local attempt = ARGV[4] -- that owns the slice
local pauseMs = tonumber(ARGV[5]) -- for which no lines of the batch are taken

-- include '../../shared/work/batches/batch-functions.lua'

local slice = findHeld(accountId, id, number, attempt)
if not slice then return {'gone'} end
local batch = batchOf(accountId, id)
returnSlice(accountId, id, batch, number, slice)
if pauseMs > 0 then
  pause(accountId, id, batch, pauseMs)
  return {'paused'}
end
local _, _, queue, model, weight = unpack(wake(accountId, id, batch))
return {'returned', queue, model, weight}
