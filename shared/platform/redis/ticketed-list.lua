-- A bounded list whose items have tickets (see ticketed-list.ts).

-- Appends an item and returns its ticket: how many items were ever pushed. Returns 0 if the list is full.
local function pushTicketed(list, pushed, bound, item)
  if redis.call('LLEN', list) >= bound then return 0 end
  redis.call('RPUSH', list, item)
  return redis.call('INCR', pushed)
end

-- How many items have been taken from the list: all of those with tickets up to this number.
local function countTaken(list, pushed)
  return tonumber(redis.call('GET', pushed) or '0') - redis.call('LLEN', list)
end
