-- Grants a call slot on the first candidate, in the order given, whose key is not on cooldown, whose route's breaker
-- lets a call through, and which has a free slot at its upstream, its key and its route. A slot is a lease held by the
-- account that uses it. The worker that holds it must have reported as alive; if it dies, its slots are freed. After an
-- outage of Redis, no slot is granted for a moment, so that survivors restore their leases first.
--
-- A key may be on cooldown only for some accounts. An open breaker blocks the accounts whose calls failed; when its
-- pause ends, one of them sends the probe. If the breaker blocks all accounts, an account without failures may send the
-- probe shortly after the last failure, without waiting for the pause to end.
--
-- The slot goes to the first account, in the order given, that is allowed to have it. While another account waits for
-- slots of the same upstream, key or route, an account gets at most half of them. The half is rounded up, so that the
-- last slot of an odd number is not left free while two accounts wait. If another account used the slots recently, an
-- account that has half leaves the last eighth free, so that the other account does not have to wait for a call to end.
-- Accounts that got no slot because none was free are recorded as waiting until they try again, or for half a second.
--
-- Durable jobs are not limited to halves: among accounts with waiting jobs, the one that has waited longest goes next.
-- They leave the last eighth free, rounded down. The same holds for lines of batch files, but they get a slot only while
-- no job waits either, and leave at least one slot free if there are two or more. Their calls do not count towards the
-- half of an account.
--
-- Redis's clock may be set back, so times further in the future than any the scripts set are ignored.
--
-- Replies {'granted', candidate, account, isProbe, spareSlots, slots}: the numbers of the candidate and of the account,
-- from 1, whether the call is its route's probe (0 or 1), how many more slots could have been granted, and the total
-- number of slots; {'busy'} if a free slot was the only thing missing; {'paused', keyMs, breakerMs}: the milliseconds
-- until the first key's cooldown ends and until the first breaker lets a probe through, -1 for each that does not
-- apply; or {'unreported'} if the worker must report first.
-- luacheck: read globals batchMark bucketMs buckets failedMs firstPauseMs maxPauseMs minAccounts probeMs restorePauseMs waitingMs

local holders = KEYS[1] -- sorted set: holders by the time until which they are alive
local holdersState = KEYS[2] -- hash: until when no slot is granted
local holder = ARGV[1] -- that asks for the slot
local lease = ARGV[2] -- name of the call's lease, after the account
local leaseMs = tonumber(ARGV[3]) -- how long the slot is held without renewal
local class = ARGV[4] -- of the call: 'interactive' if a caller waits for it, 'job' or 'batch'
local accountIds = ARGV[5] -- of the waiting accounts, as JSON, next first

-- include '../../shared/platform/redis/clock.lua'

local aliveUntil = redis.call('ZSCORE', holders, holder)
if not aliveUntil or tonumber(aliveUntil) < nowMs then return {'unreported'} end
local pauseUntil = tonumber(redis.call('HGET', holdersState, 'pauseUntil') or '0')
if pauseUntil > nowMs and pauseUntil <= nowMs + restorePauseMs then return {'busy'} end

local accounts = cjson.decode(accountIds)
-- If no account waits, the result is busy, never a pause.
local keyMs, breakerMs, isBusy, waitingSets, fullForClass = -1, -1, #accounts == 0, {}, {}
local function sooner(known, ms)
  if known < 0 or ms < known then return ms end
  return known
end

-- Whether an account other than this one waits for slots of this set.
local function isContested(waiting, account)
  local count = redis.call('ZCOUNT', waiting, nowMs, nowMs + waitingMs)
  if count == 0 then return false end
  local expiresAt = tonumber(redis.call('ZSCORE', waiting, account) or '0')
  return count > 1 or expiresAt < nowMs or expiresAt > nowMs + waitingMs
end

-- If the clock was set back, leases of dead workers would otherwise last that much longer.
local function shortenLeases(calls)
  local longest = string.format('%.0f', nowMs + leaseMs)
  for _, member in ipairs(redis.call('ZRANGEBYSCORE', calls, '(' .. longest, '+inf')) do
    redis.call('ZADD', calls, longest, member)
  end
end

-- How many slots of a set an account holds, without those of batch calls: they would keep its callers waiting until
-- they end. Each set is read at most once, and only if accounts contend for it. A set has no more leases than slots.
local heldBySet = {}
local function countHeld(calls, account)
  if not heldBySet[calls] then
    local held = {}
    for _, member in ipairs(redis.call('ZRANGE', calls, 0, -1)) do
      local owner = string.match(member, '^(.-)|')
      if owner and string.sub(member, #owner + 1, #owner + #batchMark) ~= batchMark then held[owner] = (held[owner] or 0) + 1 end
    end
    heldBySet[calls] = held
  end
  return heldBySet[calls][account] or 0
end

-- include 'slot-users.lua'
-- include 'class-waits.lua'

-- Whether so many accounts failed that the breaker blocks all accounts.
local function blocksAll(failedAccounts, servedAccounts)
  local failed = redis.call('ZCOUNT', failedAccounts, nowMs - failedMs, nowMs)
  if failed < minAccounts then return false end
  return failed > redis.call('ZCOUNT', servedAccounts, nowMs - bucketMs * buckets, nowMs)
end

-- Returns the numbers of the accounts that the breaker lets through, and which of their calls would be probes.
local function filterByBreaker(health, failedAccounts, servedAccounts, numbers)
  local openUntil, probeUntil, lastFailedAt = unpack(redis.call('HMGET', health, 'until', 'probe', 'failedAt'))
  if not openUntil then return numbers, {} end
  -- Milliseconds until an account may send a probe: failedPauseMs if its calls failed, otherwise unfailedPauseMs.
  local failedPauseMs, probeEndsMs = tonumber(openUntil) - nowMs, tonumber(probeUntil or '0') - nowMs
  local unfailedPauseMs = tonumber(lastFailedAt or '0') + firstPauseMs - nowMs
  if failedPauseMs > maxPauseMs then failedPauseMs = 0 end
  if unfailedPauseMs > firstPauseMs then unfailedPauseMs = 0 end
  if probeEndsMs > probeMs then probeEndsMs = 0 end
  local isForAll = blocksAll(failedAccounts, servedAccounts)
  local passed, probes, soonestMs = {}, {}, -1
  for _, a in ipairs(numbers) do
    local failedAt = tonumber(redis.call('ZSCORE', failedAccounts, accounts[a]) or '0')
    local isFailed = nowMs - failedAt < failedMs
    local pauseMs = isFailed and failedPauseMs or unfailedPauseMs
    if not isFailed and not isForAll then passed[#passed + 1] = a
    elseif pauseMs <= 0 and probeEndsMs <= 0 then
      passed[#passed + 1] = a
      probes[a] = 1
    else soonestMs = sooner(soonestMs, math.max(pauseMs, math.min(probeEndsMs, 100))) end
  end
  if #passed == 0 then breakerMs = sooner(breakerMs, soonestMs) end
  return passed, probes
end

-- Returns the numbers of the accounts for which the key is not on cooldown.
local function filterByCooldown(cooldowns, keyField, keyOnRouteField, rejectedAccounts)
  local cooldownMs, passed, soonestMs = 0, {}, -1
  for _, entry in ipairs(redis.call('HMGET', cooldowns, keyField, keyOnRouteField)) do
    local untilMs = entry and tonumber(string.match(entry, '^%d+'))
    if untilMs then cooldownMs = math.max(cooldownMs, untilMs - nowMs) end
  end
  for a, account in ipairs(accounts) do
    local rejectedUntil = tonumber(redis.call('ZSCORE', rejectedAccounts, account) or '0')
    local remainingMs = math.max(cooldownMs, rejectedUntil - nowMs)
    if remainingMs <= 0 then passed[#passed + 1] = a
    else soonestMs = sooner(soonestMs, remainingMs) end
  end
  if #passed == 0 then keyMs = sooner(keyMs, soonestMs) end
  return passed
end

-- Records that these accounts found no slot in this set.
local function noteFull(set, numbers)
  if class == 'interactive' then waitingSets[#waitingSets + 1] = set.waiting
  else fullForClass[set.calls] = numbers end
end

-- How many slots of a set the account may still take.
local function countAvailable(set, a)
  local available, half, eighth = set.free, math.ceil(set.limit / 2), math.floor(set.limit / 8)
  if class ~= 'interactive' then
    -- No caller waits for the call. Leave an eighth of the slots for calls that callers wait for.
    if class == 'batch' and set.limit >= 2 then eighth = math.max(1, eighth) end
    available = available - eighth
    if available > 0 and redis.call('ZCOUNT', set.waiting, nowMs, nowMs + waitingMs) > 0 then available = 0 end
    if available > 0 and class == 'batch' and classWaits('count', 'job', set.calls) > 0 then available = 0 end
    if available > 0 then
      available = available - math.min(math.ceil(set.limit / 4), classWaits('ahead', class, set.calls, a))
    end
    return available
  end
  local account = accounts[a]
  if isContested(set.waiting, account) then return math.min(available, half - countHeld(set.calls, account)) end
  if nowMs - findLastUseByOther(set.users, account) >= recentMs then return available end
  if available > eighth then return available - eighth end
  return math.min(available, half - countHeld(set.calls, account))
end

local function take(set, a)
  local account = accounts[a]
  redis.call('ZADD', set.calls, nowMs + leaseMs, account .. lease)
  redis.call('PEXPIRE', set.calls, leaseMs)
  if class == 'interactive' then redis.call('ZREM', set.waiting, account)
  else classWaits('granted', class, set.calls, a) end
  recordUse(set.users, account)
end

local candidate, eachKey, eachArg = 0, 2, 5
while eachKey < #KEYS do
  local health = KEYS[eachKey + 1] -- hash: the route's breaker
  local cooldowns = KEYS[eachKey + 2] -- hash: cooldowns of the upstream's keys
  local upstreamCalls = KEYS[eachKey + 3] -- sorted set: leases of the upstream's slots by the time at which they expire
  local keyCalls = KEYS[eachKey + 4] -- sorted set: leases of the key's slots
  local routeCalls = KEYS[eachKey + 5] -- sorted set: leases of the route's slots
  local upstreamWaiting = KEYS[eachKey + 6] -- sorted set: accounts that wait for the upstream's slots
  local keyWaiting = KEYS[eachKey + 7] -- sorted set: accounts that wait for the key's slots
  local routeWaiting = KEYS[eachKey + 8] -- sorted set: accounts that wait for the route's slots
  local upstreamUsers = KEYS[eachKey + 9] -- hash: who used the upstream's slots recently
  local keyUsers = KEYS[eachKey + 10] -- hash: who used the key's slots recently
  local routeUsers = KEYS[eachKey + 11] -- hash: who used the route's slots recently
  local failedAccounts = KEYS[eachKey + 12] -- sorted set: accounts whose latest two calls failed on the route
  local servedAccounts = KEYS[eachKey + 13] -- sorted set: accounts whose last call succeeded on the route
  local rejectedAccounts = KEYS[eachKey + 14] -- sorted set: accounts by the end of the key's cooldown on the route
  local upstreamLimit = tonumber(ARGV[eachArg + 1]) -- slots of the upstream; 0 for no limit
  local keyLimit = tonumber(ARGV[eachArg + 2]) -- slots of the key; 0 for no limit
  local routeLimit = tonumber(ARGV[eachArg + 3]) -- slots of the route; 0 for no limit
  local keyField = ARGV[eachArg + 4] -- of the key's cooldown everywhere
  local keyOnRouteField = ARGV[eachArg + 5] -- of the key's cooldown on the route
  candidate, eachKey, eachArg = candidate + 1, eachKey + 14, eachArg + 5

  local passed, probes = filterByCooldown(cooldowns, keyField, keyOnRouteField, rejectedAccounts), {}
  if #passed > 0 then
    passed, probes = filterByBreaker(health, failedAccounts, servedAccounts, passed)
  end
  if #passed > 0 then
    local sets, isFull = {}, false
    for _, set in ipairs({
      {calls = upstreamCalls, waiting = upstreamWaiting, users = upstreamUsers, limit = upstreamLimit},
      {calls = keyCalls, waiting = keyWaiting, users = keyUsers, limit = keyLimit},
      {calls = routeCalls, waiting = routeWaiting, users = routeUsers, limit = routeLimit},
    }) do
      if set.limit > 0 then
        sets[#sets + 1] = set
        redis.call('ZREMRANGEBYSCORE', set.calls, '-inf', nowMs)
        set.free = set.limit - redis.call('ZCARD', set.calls)
        if set.free <= 0 then
          isFull = true
          shortenLeases(set.calls)
        end
      end
    end
    for _, a in ipairs(isFull and {} or passed) do
      local probe, spare, slots, isAllowed = probes[a] or 0, 1000000, 1000000, true
      for _, set in ipairs(sets) do
        local available = countAvailable(set, a)
        if available <= 0 then
          isAllowed = false
          noteFull(set, passed)
          break
        end
        if available - 1 < spare then spare, slots = available - 1, set.limit end
      end
      if isAllowed then
        for _, set in ipairs(sets) do take(set, a) end
        if probe == 1 then redis.call('HSET', health, 'probe', nowMs + probeMs) end
        return {'granted', candidate, a, probe, probe == 1 and 0 or spare, slots}
      end
    end
    isBusy = true
    for _, set in ipairs(sets) do
      if set.free <= 0 then noteFull(set, passed) end
    end
  end
end
for calls, numbers in pairs(fullForClass) do classWaits('full', class, calls, numbers) end
for _, waiting in ipairs(waitingSets) do
  for _, account in ipairs(accounts) do redis.call('ZADD', waiting, nowMs + waitingMs, account) end
  redis.call('ZREMRANGEBYSCORE', waiting, '-inf', nowMs)
  redis.call('PEXPIRE', waiting, waitingMs)
end
if isBusy then return {'busy'} end
return {'paused', keyMs, breakerMs}
