-- Sets Redis's trim position of a shard's ledger to MongoDB's checkpoint, after lost entries have been restored.
-- Another reader may have advanced further in the meantime, so the position is never moved back.

local stream = KEYS[1] -- stream: ledger of the shard
local recovering = KEYS[2] -- string: set while no account may be restored
local trimmed = KEYS[3] -- string: id of the last entry that was trimmed
local checkpoint = ARGV[1] -- id of the last entry that MongoDB has applied

-- include '../../shared/ledger/ledger-stream.lua'

advanceStream(stream, recovering, checkpoint)
if isLaterId(checkpoint, redis.call('GET', trimmed) or '0-0') then redis.call('SET', trimmed, checkpoint) end
