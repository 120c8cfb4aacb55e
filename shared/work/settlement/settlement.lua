-- Settles requests. A settlement ends the reservation of a request, debits the exact cost and appends the usage event.
-- The reservation makes this idempotent: the first settlement removes it, and without a reservation nothing happens. A
-- cost above the reservation is debited only from money that no other request has reserved, and only up to the maximum
-- in the reservation and what is left of the account's budgets, which is nothing if their period has ended. The remaining
-- cost is the shortfall.
--
-- If the reservation was released as an orphan although its process was alive, the request is settled late, from the
-- balance that is available now. With an Idempotency-Key, the claim was deleted together with the reservation. The
-- request is then settled late only if the caller has not sent it again: the caller is charged for only one of the two.
-- A late success gets its claim back, so that later retries find the response. If the period of a budget has ended, it is
-- charged what it had reserved: it has no reservation any more, and would otherwise be free.
--
-- A failure deletes the claim of its Idempotency-Key, because failures are not replayed. A success keeps it.
--
-- A durable job has its reservation in its own record and ends in the same step. Only the attempt that currently owns
-- the job may end it; an attempt that was presumed lost changes nothing.
--
-- One script execution settles all requests that a process has to settle on one shard in one event loop turn. They are
-- settled separately and in order, and a failure in one does not affect the others.
--
-- Replies for each request {'settled', costNano, isFree}, {'absent'} if the reservation had already ended, {'unknown'}
-- if the account is not in Redis, or {'error', message}.
-- luacheck: read globals claimLifetimeSeconds

-- include 'recent-minutes.lua'
-- include '../../money/budgets.lua'
-- include '../../money/token-window.lua'

local reservations = KEYS[1] -- hash: reservations of the shard by request
local stream = KEYS[2] -- stream: ledger of the shard
local orphans = KEYS[3] -- hash: reservations released as orphans by request

-- Returns the reply. `job` is false if the request is not a durable job, and `jobs` has the functions for those that
-- are.
local function settle(jobs, account, minutes, claim, id, exactCost, refundsFreeRequest, event, keepsClaim, job)
  local held
  local isLate = false
  if job then held = jobs.findReservation(job, id)
  else held = redis.call('HGET', reservations, id) end
  if not held then
    if job or event == '' then return {'absent'} end
    held = redis.call('HGET', orphans, id)
    if not held then return {'absent'} end
    isLate = true
  end
  -- An orphan also has the body of its claim and, after a `|`, the time of its release.
  local accountId, reserved, isFree, admittedAt, maxCharge, claimHash, claimBody =
    string.match(held, '^(%S+) (%d+) (%d) (%d+) <(%d+) ?([^ |]*) ?([^|]*)')
  if not accountId then error('The reservation of ' .. id .. ' cannot be read.') end
  local hasClaim = claim ~= reservations
  local isClaimedLate = isLate and claimHash ~= ''
  if isClaimedLate and (not hasClaim or claimBody == '' or redis.call('EXISTS', claim) == 1) then return {'absent'} end

  local balance, allReserved, free, freeHeld, charges, isRestricted =
    unpack(redis.call('HMGET', account, 'bal', 'res', 'free', 'fres', 'charges', 'ext'))
  if not balance and event ~= '' then return {'unknown'} end
  -- The first write must need no memory; see dropLease.
  if job then jobs.dropLease(job, id) else redis.call('HDEL', isLate and orphans or reservations, id) end
  if isClaimedLate then redis.call('HSET', claim, 'body', claimBody, 'id', id) end
  if hasClaim and redis.call('HGET', claim, 'id') == id then
    if keepsClaim == '1' then redis.call('EXPIRE', claim, claimLifetimeSeconds) else redis.call('DEL', claim) end
  end
  if job then jobs.releaseReserved(job, reserved, isFree, admittedAt) end
  if not balance then
    if job then jobs.endJob(job, id, '0', 0) end
    return {'settled', '0', '0'}
  end

  balance, allReserved, free, freeHeld = tonumber(balance), tonumber(allReserved), tonumber(free), tonumber(freeHeld)
  reserved = tonumber(reserved)
  local ofEndedPeriods = isLate and reserved or 0
  -- A free request reserved no money, so its cost has no maximum if it must be charged after all.
  local payable = isFree == '1' and exactCost or math.min(exactCost, tonumber(maxCharge))
  if isLate then
    reserved = 0
    if isFree == '1' and free <= freeHeld then isFree = '0' end
  elseif isFree == '1' then
    freeHeld = freeHeld - 1
  else
    allReserved = allReserved - reserved
  end
  local budgets, tokenLimit, day
  local inBudgets = isFree == '0' and reserved or 0 -- that budgets have reserved for it
  if isRestricted then
    local operatorsBudget, ownersBudget
    tokenLimit, operatorsBudget, ownersBudget = unpack(redis.call('HMGET', account, 'tpm', 'bud', 'obud'))
    budgets = openBudgets(account, operatorsBudget, ownersBudget)
    day = dayOf(admittedAt)
  end
  local cost, shortfall = 0, 0
  if isFree == '1' then
    if refundsFreeRequest == '1' then isFree = '0' else free = free - 1 end
  else
    cost = payable
    if cost > reserved then
      if budgets and inBudgets > 0 then budgets.change(day, -inBudgets, 0) end
      inBudgets = 0
      local left = budgets and budgets.findLeft(day, ofEndedPeriods)
      local available = math.min(balance - allReserved, left or balance)
      cost = math.min(cost, math.max(reserved, available))
    end
    shortfall = exactCost - cost
    balance = balance - cost
    if budgets and (inBudgets > 0 or cost > 0) then budgets.change(day, -inBudgets, cost) end
  end
  local costText = string.format('%.0f', cost)
  if job then jobs.endJob(job, id, costText, isFree) end
  if event == '' then
    redis.call('HSET', account, 'res', string.format('%.0f', allReserved), 'fres', freeHeld)
    return {'settled', costText, isFree}
  end
  local ordinal = tonumber(charges or '0') + 1
  redis.call('HSET', account, 'bal', string.format('%.0f', balance), 'res', string.format('%.0f', allReserved),
    'free', free, 'fres', freeHeld, 'charges', ordinal)
  -- The time of the event is from the clock of an api process, which may have another day than the admission.
  local at = budgets and string.match(event, '"at":(%d+)')
  local last = at and dayOf(at) ~= day and {'day', day} or {}
  -- Every entry starts with its kind and account: readers find an account's entries by these positions.
  local entry = redis.call('XADD', stream, '*', 'kind', 'charge', 'account', accountId, 'id', id,
    'cost', costText, 'shortfall', string.format('%.0f', shortfall), 'free', isFree, 'ordinal', ordinal, 'event', event,
    unpack(last))
  if tokenLimit then addTokens(account, tonumber(string.match(event, '"completionTokens":(%d+)') or '0')) end
  noteMinute(minutes, entry, 1, cost)
  return {'settled', costText, isFree}
end

-- Settles all requests. `jobs` is nil if none is a durable job.
local function settleAll(jobs)
  local results = {}
  local eachKey, eachArg = 3, 0
  while eachKey < #KEYS do
    local account = KEYS[eachKey + 1] -- hash: the account
    local minutes = KEYS[eachKey + 2] -- hash: the account's requests by minute of the hour
    local claim = KEYS[eachKey + 3] -- hash: the claim of the Idempotency-Key; the reservations again if there is none
    local id = ARGV[eachArg + 1] -- of the request
    local exactCost = tonumber(ARGV[eachArg + 2]) -- nano-roubles
    local refundsFreeRequest = ARGV[eachArg + 3] -- '1' to return a reserved free request
    local event = ARGV[eachArg + 4] -- the usage event as JSON; '' if nothing is logged
    local keepsClaim = ARGV[eachArg + 5] -- '1' to keep the claim, '0' to delete it
    local job = ARGV[eachArg + 6] -- how a durable job ends, as JSON; '' for other requests
    local done, result = pcall(settle, jobs, account, minutes, claim, id, exactCost, refundsFreeRequest, event,
      keepsClaim, job ~= '' and cjson.decode(job))
    if not done then result = {'error', type(result) == 'table' and result.err or result} end
    results[#results + 1] = result
    eachKey, eachArg = eachKey + 3, eachArg + 6
  end
  return results
end
