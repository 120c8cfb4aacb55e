-- Reports a holder of call slots as alive, and declares those dead that have not reported for a while. A holder that
-- was declared dead is never alive again, so everything that it still sends is recognised: its worker continues under a
-- new name. That is true only as long as Redis has its data, which the epoch shows: after a loss of the data, a holder
-- with the previous epoch is alive if it reports soon.
--
-- Replies {isDead, mustRestore, epoch, dead}: 1 if the holder is dead, 1 if its leases may have expired, and the
-- holders that were declared dead within the lifetime of a lease.
-- luacheck: read globals maxGapMs restorePauseMs keyLifetimeMs

local holders = KEYS[1] -- sorted set: holders by the time until which they are alive
local dead = KEYS[2] -- sorted set: holders by the time at which they were declared dead
local state = KEYS[3] -- hash: the epoch, and when holders reported
local holder = ARGV[1] -- that reports
local knownEpoch = ARGV[2] -- of its last report; '' if it has never reported
local newEpoch = ARGV[3] -- to begin if Redis has none
local lifetimeMs = tonumber(ARGV[4]) -- of a report
local leaseMs = tonumber(ARGV[5]) -- lifetime of a lease

-- include '../../shared/platform/redis/clock.lua'
-- include '../../shared/platform/redis/whole.lua'

local savedEpoch, savedSince, savedReportedAt, savedGraceUntil =
  unpack(redis.call('HMGET', state, 'epoch', 'since', 'reportedAt', 'graceUntil'))
local epoch, since = savedEpoch or newEpoch, tonumber(savedSince or nowMs)
local reportedAt, graceUntil = tonumber(savedReportedAt or '0'), tonumber(savedGraceUntil or '0')
-- The clock may have stepped back.
if reportedAt > nowMs or nowMs - reportedAt > maxGapMs or graceUntil > nowMs + lifetimeMs then
  graceUntil = nowMs + lifetimeMs
end
redis.call('HSET', state, 'epoch', epoch, 'since', since, 'reportedAt', nowMs, 'graceUntil', whole(graceUntil))
for _, name in ipairs(redis.call('ZRANGEBYSCORE', holders, '(' .. whole(nowMs + lifetimeMs), '+inf')) do
  redis.call('ZADD', holders, whole(nowMs + lifetimeMs), name)
end

local isDead, mustRestore = 0, 0
if knownEpoch ~= '' then
  local aliveUntil = tonumber(redis.call('ZSCORE', holders, holder) or '-1')
  if aliveUntil < 0 then
    if knownEpoch == epoch or nowMs - since > lifetimeMs then isDead = 1 else mustRestore = 1 end
  elseif nowMs - aliveUntil + lifetimeMs > math.max(lifetimeMs, leaseMs * 2 / 3) then
    mustRestore = 1
  end
end
if isDead == 0 then redis.call('ZADD', holders, whole(nowMs + lifetimeMs), holder) end
if mustRestore == 1 then redis.call('HSET', state, 'pauseUntil', whole(nowMs + restorePauseMs)) end

if nowMs >= graceUntil then
  for _, name in ipairs(redis.call('ZRANGEBYSCORE', holders, '-inf', '(' .. whole(nowMs), 'LIMIT', 0, 100)) do
    redis.call('ZREM', holders, name)
    redis.call('ZADD', dead, nowMs, name)
  end
end
redis.call('ZREMRANGEBYSCORE', dead, '-inf', nowMs - leaseMs)
redis.call('PEXPIRE', dead, leaseMs)
redis.call('PEXPIRE', holders, keyLifetimeMs)
redis.call('PEXPIRE', state, keyLifetimeMs)
return {isDead, mustRestore, epoch, redis.call('ZRANGE', dead, 0, -1)}
