-- Finds one account's refills among the entries before a position, newest first.
--
-- Replies {last, entries}: the id of the last entry read, '' if the beginning of the stream was read; and the refills.

local stream = KEYS[1] -- stream: ledger of the account's shard
local accountId = ARGV[1] -- of the account
local before = ARGV[2] -- the position
local maxEntries = tonumber(ARGV[3]) -- to read

local found = {}
local entries = redis.call('XREVRANGE', stream, before, '-', 'COUNT', maxEntries)
for _, entry in ipairs(entries) do
  -- Every entry starts with its kind and account.
  local _, kind, _, account = unpack(entry[2], 1, 4)
  if kind == 'refill' and account == accountId then found[#found + 1] = entry end
end
local isAll = #entries < maxEntries
return {isAll and '' or entries[#entries][1], found}
