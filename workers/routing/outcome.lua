-- Releases a call's slots, counts its outcome and updates the breaker. The breaker opens if too many calls in the
-- window failed, closes after a successful probe, and stays open for longer after a failed one. The window is a ring of
-- buckets, each marked with the time that it covers.
--
-- An open breaker blocks accounts according to their votes. An account's latest calls are its vote: it votes "failed"
-- after two failures in a row, because a single failure happens on any route. Calls that began before the breaker
-- opened do not change the vote of an account that it blocks. Once all failures have expired, the breaker closes.
--
-- A vendor may have rejected a key because of what one account requested. The key then goes on cooldown only for that
-- account. It goes on cooldown for all accounts if it was rejected for several and they outnumber those served with it
-- recently.
--
-- A holder that was declared dead holds no slots, and its outcomes do not count.
--
-- A failure that the request itself may have caused does not count if the route served other calls at that time.
--
-- A key that the vendor refused for all accounts is noted until a call with it succeeds, so that operators see it after its
-- cooldown.
--
-- Replies {breaker, cooldownFor}: 'same', 'opened', 'open' or 'closed', and the accounts for which the key went on
-- cooldown: 'nobody', 'accounts' or 'all'.
-- luacheck: read globals bucketMs buckets minCalls failedPercent minAccounts failedMs firstPauseMs maxPauseMs servedMs
-- luacheck: read globals retentionMs refusalNotedMs

local health = KEYS[1] -- hash: recent outcomes of the route, and its breaker
local cooldowns = KEYS[2] -- hash: cooldowns of the upstream's keys, and their last refusals
local servedAccounts = KEYS[3] -- sorted set: accounts whose last call succeeded on the route
local failedAccounts = KEYS[4] -- sorted set: accounts whose latest two calls failed
local struckAccounts = KEYS[5] -- sorted set: accounts whose latest call failed, but not the one before
local servedWithKey = KEYS[6] -- sorted set: accounts whose last call with the key succeeded
local rejectedAccounts = KEYS[7] -- sorted set: accounts by the end of the key's cooldown on the route
local holders = KEYS[8] -- sorted set: holders that are alive
local lease = ARGV[1] -- of the call's slots
local outcome = ARGV[2] -- 'ok', 'bad', 'limited' or 'none'
local isProbe = ARGV[3] -- '1' if the call was its route's probe
local cooldownField = ARGV[4] -- of the key's cooldown; '' if the key does not go on cooldown
local cooldownScope = ARGV[5] -- 'key' or 'keyOnRoute'
local cooldownReason = ARGV[6] -- for operators
local forMs = tonumber(ARGV[7]) -- length of a cooldown for all accounts
local forAccountMs = tonumber(ARGV[8]) -- length of a cooldown for some accounts
local calls = tonumber(ARGV[9]) -- how many calls had this outcome
local holder = ARGV[10] -- of the slots
local unlessServedForMs = tonumber(ARGV[11]) -- the outcome counts only if no call was served within; '' to count always
local accountIds = ARGV[12] -- of the accounts that the call served, as JSON
local refusalField = ARGV[13] -- under which the refusal of the key is noted; '' if it was not refused
local keyRefusal = ARGV[14] -- field of the key's last refusal
local routeRefusal = ARGV[15] -- field of its last refusal on the route

-- include '../../shared/platform/redis/clock.lua'

for eachKey = 8, #KEYS - 1 do
  local slots = KEYS[eachKey + 1] -- sorted set: leases, including this one
  redis.call('ZREM', slots, lease)
end
if not redis.call('ZSCORE', holders, holder) then return {'same', 'nobody'} end

local accounts, windowMs = cjson.decode(accountIds), bucketMs * buckets
local function extendExpiry(key, ms)
  if redis.call('PTTL', key) < ms then redis.call('PEXPIRE', key, string.format('%.0f', ms)) end
end
local function removeOld(votes, ms) redis.call('ZREMRANGEBYSCORE', votes, '-inf', nowMs - ms) end
local function startCooldown(field, ms)
  local untilMs = nowMs + ms
  local known = redis.call('HGET', cooldowns, field)
  if not known or tonumber(string.match(known, '^%d+')) < untilMs then
    redis.call('HSET', cooldowns, field, string.format('%.0f', untilMs) .. ' ' .. cooldownReason)
  end
  extendExpiry(cooldowns, ms)
end
local function startKeyCooldown()
  if cooldownScope ~= 'key' then
    for _, account in ipairs(accounts) do
      redis.call('ZADD', rejectedAccounts, 'GT', nowMs + forAccountMs, account)
      redis.call('ZREM', servedWithKey, account)
    end
    removeOld(rejectedAccounts, windowMs)
    extendExpiry(rejectedAccounts, forAccountMs + windowMs)
    local rejected = redis.call('ZCARD', rejectedAccounts)
    if rejected < minAccounts or rejected <= redis.call('ZCOUNT', servedWithKey, nowMs - windowMs, nowMs) then
      startCooldown('some ' .. cooldownField, forAccountMs)
      return 'accounts'
    end
  end
  startCooldown(cooldownField, forMs)
  return 'all'
end
local cooldownFor = cooldownField == '' and 'nobody' or startKeyCooldown()
if cooldownFor == 'all' and refusalField ~= '' then
  redis.call('HSET', cooldowns, refusalField, string.format('%.0f', nowMs) .. ' ' .. cooldownReason)
  extendExpiry(cooldowns, refusalNotedMs)
end

if unlessServedForMs
  and redis.call('ZCOUNT', servedAccounts, nowMs - unlessServedForMs - servedMs, nowMs) > 0 then
  outcome = 'none'
end

local bucket = math.floor(nowMs / bucketMs)
local index = bucket % buckets
local function countOutcome()
  if tonumber(redis.call('HGET', health, 'at:' .. index) or '-1') ~= bucket then
    redis.call('HSET', health, 'at:' .. index, bucket, 'ok:' .. index, 0, 'bad:' .. index, 0, 'limited:' .. index, 0)
  end
  redis.call('HINCRBY', health, outcome .. ':' .. index, calls)
  redis.call('PEXPIRE', health, retentionMs)
end
if outcome == 'none' or outcome == 'limited' then
  if isProbe == '1' then redis.call('HDEL', health, 'probe') end
  if outcome == 'limited' then countOutcome() end
  return {'same', cooldownFor}
end

local openUntil = tonumber(redis.call('HGET', health, 'until') or '0')
if openUntil > 0 then
  removeOld(failedAccounts, failedMs)
  if redis.call('ZCARD', failedAccounts) == 0 then
    redis.call('HDEL', health, 'until', 'probe', 'pauses', 'failedAt')
    openUntil = 0
  end
end
-- A probe whose response started well has already closed the breaker.
local decides = isProbe == '1' and openUntil > 0
local function addVote(votes, account, lifetimeMs)
  redis.call('ZADD', votes, nowMs, account)
  extendExpiry(votes, lifetimeMs)
end
-- Whether the vote was added within the last second.
local function isRecent(votes, account)
  local at = tonumber(redis.call('ZSCORE', votes, account) or '0')
  return at <= nowMs and at > nowMs - 1000
end
local function recordSuccess(account)
  -- The success is already recorded: a later failure would have removed it.
  if isRecent(servedAccounts, account) and isRecent(servedWithKey, account) then return end
  removeOld(servedAccounts, windowMs)
  removeOld(servedWithKey, windowMs)
  addVote(servedWithKey, account, windowMs)
  local rejectedUntil = redis.call('ZSCORE', rejectedAccounts, account)
  if rejectedUntil and tonumber(rejectedUntil) <= nowMs then redis.call('ZREM', rejectedAccounts, account) end
  if openUntil > 0 and not decides and redis.call('ZSCORE', failedAccounts, account) then return end
  addVote(servedAccounts, account, windowMs)
  redis.call('ZREM', failedAccounts, account)
  redis.call('ZREM', struckAccounts, account)
end
local function recordFailure(account)
  redis.call('ZREM', servedAccounts, account)
  local isAgain = redis.call('ZREM', struckAccounts, account) == 1 or redis.call('ZSCORE', failedAccounts, account)
  if decides or isAgain then addVote(failedAccounts, account, failedMs)
  else addVote(struckAccounts, account, windowMs) end
end
if outcome == 'ok' then
  redis.call('HDEL', cooldowns, keyRefusal, routeRefusal)
  for _, account in ipairs(accounts) do recordSuccess(account) end
else
  removeOld(failedAccounts, failedMs)
  removeOld(struckAccounts, windowMs)
  for _, account in ipairs(accounts) do recordFailure(account) end
end
if decides then
  if outcome == 'ok' then
    redis.call('DEL', health, failedAccounts, struckAccounts)
    return {'closed', cooldownFor}
  end
  redis.call('HDEL', health, 'probe')
  redis.call('HSET', health, 'failedAt', nowMs)
  -- Accounts that have not failed may probe before the pause ends.
  if openUntil <= nowMs or openUntil > nowMs + maxPauseMs then
    local pauses = redis.call('HINCRBY', health, 'pauses', 1)
    local pauseMs = math.min(maxPauseMs, firstPauseMs * 2 ^ math.min(pauses - 1, 20))
    redis.call('HSET', health, 'until', string.format('%.0f', nowMs + pauseMs))
  end
  redis.call('PEXPIRE', health, retentionMs)
  return {'open', cooldownFor}
end
countOutcome()
if outcome == 'ok' or openUntil > 0 or redis.call('ZCARD', failedAccounts) == 0 then return {'same', cooldownFor} end
local ok, bad = 0, 0
for i = 0, buckets - 1 do
  local at, okOfBucket, badOfBucket = unpack(redis.call('HMGET', health, 'at:' .. i, 'ok:' .. i, 'bad:' .. i))
  if at and tonumber(at) > bucket - buckets and tonumber(at) <= bucket then
    ok, bad = ok + tonumber(okOfBucket), bad + tonumber(badOfBucket)
  end
end
if ok + bad < minCalls or bad * 100 < (ok + bad) * failedPercent then return {'same', cooldownFor} end
redis.call('HSET', health, 'until', string.format('%.0f', nowMs + firstPauseMs), 'pauses', 1, 'failedAt', nowMs)
return {'opened', cooldownFor}
