-- Renews the leases of taken slices. Replies {position, reason} for each slice that its worker must not go on with, with its
-- position in the list from 1: 'gone' because another attempt has it or the batch has ended, or the code of its remaining
-- lines, which must not be begun.

local prefix = KEYS[1] -- of the keys of the accounts' shard

-- include '../../shared/work/batches/batch-functions.lua'

local stop = {}
for eachArg = 0, #ARGV - 1, 4 do
  local position = eachArg / 4 + 1
  local accountId = ARGV[eachArg + 1] -- of the account
  local id = ARGV[eachArg + 2] -- of the batch
  local number = ARGV[eachArg + 3] -- of the slice
  local attempt = ARGV[eachArg + 4] -- of the worker
  if findHeld(accountId, id, number, attempt) then
    redis.call('ZADD', prefix .. 'batch-leases', nowMs + sliceLeaseMs, leaseMember(accountId, id, number))
    local why = redis.call('HGET', batchOf(accountId, id), 'why')
    if why then stop[#stop + 1] = {position, why} end
  else
    stop[#stop + 1] = {position, 'gone'}
  end
end
return stop
