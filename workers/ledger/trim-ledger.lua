-- Trims entries that are safely in MongoDB, and records the id of the last one, because restoring an account from
-- MongoDB needs that position. If another reader trimmed further while this one was paused, the position does not move
-- back, and this reader must check Redis against MongoDB again. If the stream lacks the last entry that was read from
-- it, Redis lost data. Nothing is trimmed then, so that the recorded position shows the loss.
--
-- Entries that could not be read completely, and are still in the stream, are copied to the dead letters before they
-- are trimmed, so an entry is always in exactly one of the two streams.
--
-- Replies the position if this reader recorded it, else false.

local stream = KEYS[1] -- stream: ledger of the shard
local trimmed = KEYS[2] -- string: id of the last entry that was trimmed
local deadLetters = KEYS[3] -- stream: entries that could not be read completely
local last = ARGV[1] -- id of the last entry of the batch
local firstKept = ARGV[2] -- the id right after it

-- include '../../shared/ledger/ledger-stream.lua'

local isFurther = isLaterId(last, redis.call('GET', trimmed) or '0-0')
if isFurther then
  if #redis.call('XRANGE', stream, last, last) == 0 then return false end
  redis.call('SET', trimmed, last)
end
for eachArg = 2, #ARGV - 1, 3 do
  local unread = ARGV[eachArg + 1] -- id of an entry that could not be read completely
  local reason = ARGV[eachArg + 2] -- why
  local isCounted = ARGV[eachArg + 3] -- '1' if its amounts are applied
  for _, entry in ipairs(redis.call('XRANGE', stream, unread, unread)) do
    local id, fields = unpack(entry)
    redis.call('XADD', deadLetters, '*', 'entry', id, 'reason', reason, 'counted', isCounted, unpack(fields))
  end
end
redis.call('XTRIM', stream, 'MINID', firstKept)
return isFurther and last
