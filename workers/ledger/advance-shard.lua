-- Advances the ledger stream of a shard, if Redis has lost entries that MongoDB has applied.

local stream = KEYS[1] -- stream: ledger of the shard
local recovering = KEYS[2] -- string: set while no account may be restored
local checkpoint = ARGV[1] -- id of the last entry that MongoDB has applied

-- include '../../shared/ledger/ledger-stream.lua'

advanceStream(stream, recovering, checkpoint)
