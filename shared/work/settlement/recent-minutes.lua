-- An account's requests and spending by minute of the last hour.

-- Adds requests that were settled by a ledger entry. `cost` is in nano-roubles.
local function noteMinute(minutes, entry, added, cost)
  local minute = math.floor(tonumber(string.match(entry, '^%d+')) / 60000)
  local slot = minute % 60
  local known = redis.call('HGET', minutes, slot)
  local knownMinute, requests, spent = string.match(known or '', '^(%d+) (%d+) (%d+)')
  if tonumber(knownMinute or '0') == minute then
    redis.call('HSET', minutes, slot, string.format('%d %d %.0f', minute, requests + added, spent + cost))
  else
    redis.call('HSET', minutes, slot, string.format('%d %d %.0f', minute, added, cost))
    redis.call('EXPIRE', minutes, 3660)
  end
end
