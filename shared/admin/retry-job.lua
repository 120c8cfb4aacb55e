-- Reserves the amount that a failed job had reserved, for a new request that repeats the job's work. A new request is
-- needed because the failed job already has its row in the log, and its id is never charged again. A job can be retried
-- once; its retry can be retried too.
--
-- What the account may do now counts, not what it could do when the job was admitted.
--
-- A dry run replies the same and writes nothing.
--
-- Replies 'ok' or why the job is not retried (see `RetryOutcome`).

local prefix = KEYS[1] -- of the keys of the account's shard
local accountId = ARGV[1] -- of the account
local id = ARGV[2] -- of the failed job
local newId = ARGV[3] -- of the new request
local isDryRun = ARGV[4] -- 1 if nothing is written

-- include '../platform/redis/clock.lua'
-- include '../money/allowed-models.lua'
-- include '../money/budgets.lua'

local account = prefix .. 'account:' .. accountId
local reservations = prefix .. 'reservations'
local jobs = prefix .. 'job:' .. accountId .. ':'
local status, hold, retryId, charged, model = unpack(redis.call('HMGET', jobs .. id, 'st', 'was', 'rt', 'cost', 'm'))
if status ~= 'f' then return 'not_failed' end
-- Ignore an earlier retry that never became a job.
if retryId and (redis.call('EXISTS', jobs .. retryId) == 1
  or redis.call('HEXISTS', reservations, retryId) == 1) then return 'retried' end
if charged and charged ~= '0' then return 'charged' end
if not hold or redis.call('EXISTS', prefix .. 'job-body:' .. accountId .. ':' .. id) == 0 then return 'not_kept' end
local balance, reserved, free, freeHeld, ban, isRestricted =
  unpack(redis.call('HMGET', account, 'bal', 'res', 'free', 'fres', 'ban', 'ext'))
if not balance then return 'unknown' end
if ban == '1' then return 'banned' end
local budgets
if isRestricted then
  local expiresAt, models, ownersModels, operatorsBudget, ownersBudget =
    unpack(redis.call('HMGET', account, 'exp', 'mod', 'omod', 'bud', 'obud'))
  if expiresAt and tonumber(expiresAt) <= nowMs then return 'expired' end
  if not isModelAllowed(model, models, ownersModels) then return 'model_refused' end
  budgets = openBudgets(account, operatorsBudget, ownersBudget)
end
local cost, isFree, maxCharge, claimHash = string.match(hold, '^(%d+) (%d) %d+ <(%d+) ?(%S*)')
if claimHash ~= '' and redis.call('EXISTS', prefix .. 'claim:' .. accountId .. ':' .. claimHash) == 1 then
  return 'sent_again'
end
if isFree == '1' then
  if tonumber(free) <= tonumber(freeHeld) then return 'insufficient' end
  if isDryRun == '1' then return 'ok' end
  redis.call('HINCRBY', account, 'fres', 1)
else
  if tonumber(balance) - tonumber(reserved) < tonumber(cost) then return 'insufficient' end
  if budgets and budgets.findLeft() < tonumber(cost) then return 'over_budget' end
  if isDryRun == '1' then return 'ok' end
  if budgets then budgets.change(dayOf(nowMs), tonumber(cost), 0) end
  redis.call('HINCRBY', account, 'res', cost)
end
local reservation = string.format('%s %s %s %.0f <%s', accountId, cost, isFree, nowMs, maxCharge)
redis.call('HSET', reservations, newId, reservation)
redis.call('HSET', jobs .. id, 'rt', newId)
return 'ok'
