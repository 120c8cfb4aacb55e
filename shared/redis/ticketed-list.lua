-- A bounded list whose items have tickets (see ticketed-list.ts).

-- Appends an item and returns its ticket: how many items were ever pushed. Returns 0 if the list is full.
local function pushTicketed(list, pushed, bound, item)
  if redis.call('LLEN', list) >= bound then return 0 end
  redis.call('RPUSH', list, item)
  return redis.call('INCR', pushed)
end
