-- Functions for the ledger stream of a shard.

-- Returns whether one stream id is later than another.
local function isLaterId(one, other)
  local function split(id)
    local ms, seq = string.match(id, '^(%d+)-(%d+)$')
    return tonumber(ms), tonumber(seq)
  end
  local ms, seq = split(one)
  local otherMs, otherSeq = split(other)
  return ms > otherMs or (ms == otherMs and seq > otherSeq)
end

-- Advances a stream that ends before the last entry that MongoDB has applied, which means that Redis has lost entries.
-- The stream continues after that position, so that no new entry is mistaken for one already applied. Also blocks
-- account restores for two seconds, so that a reader's last batch from before the loss reaches MongoDB first. Returns
-- whether the stream was advanced.
local function advanceStream(stream, recovering, checkpoint)
  if checkpoint == '0-0' then return false end
  local mark = redis.pcall('XADD', stream, checkpoint, 'kind', 'mark')
  if type(mark) ~= 'string' then return false end
  redis.call('XDEL', stream, mark)
  redis.call('SET', recovering, '1', 'PX', 2000)
  return true
end
