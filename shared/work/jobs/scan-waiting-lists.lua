-- Scans the accounts' lists of waiting jobs or batches, one per queue and model. `JobTurns.sync` repairs its index from
-- them.
--
-- Replies {cursor, lists}: account, queue, model, number of waiting items and weight of each list.

local prefix = KEYS[1] -- of the keys of the shard
local cursor = ARGV[1] -- of the scan
local setName = ARGV[2] -- of the shard's set of lists that are not empty
local listName = ARGV[3] -- beginning of the lists' names

local lines = prefix .. setName
local nextCursor, members = unpack(redis.call('SSCAN', lines, cursor, 'COUNT', 100))
local lists = {}
for _, member in ipairs(members) do
  local accountId, queue, model = string.match(member, '^(%S+) (%S+) (.+)$')
  local waiting = redis.call('ZCARD', prefix .. listName .. accountId .. ':' .. queue .. ':' .. model)
  if waiting == 0 then redis.call('SREM', lines, member) end
  local weight = redis.call('HGET', prefix .. 'account:' .. accountId, 'wgt') or '1'
  lists[#lists + 1] = {accountId, queue, model, waiting, weight}
end
return {nextCursor, lists}
