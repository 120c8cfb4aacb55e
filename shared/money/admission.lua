-- What the scripts of admission have in common: the request, and the steps that admit it. A step returns the reply if
-- the request goes no further, else nil.
--
-- Requests rejected for insufficient balance still use up their RPM slots, and so do those over a budget or the limit of
-- tokens, those for a model that is not allowed, and replays and conflicts of an Idempotency-Key: the rate limit also
-- applies to a caller that has no balance or only replays a stored response.
--
-- Replies {'ok', limit, remaining, resetSeconds, costNano, isFree, units, ticket, budget, tokens}, {'unknown'},
-- {'banned'}, {'revoked'}, {'expired', atMs}, {'address_refused'}, {'ledger_full'}, {'rate_limited', limit, remaining,
-- resetSeconds, retryAfterMs}, {'model_refused', limit, remaining, resetSeconds}, {'tokens_limited', limit, remaining,
-- resetSeconds, tokens}, {'insufficient', limit, remaining, resetSeconds, neededNano, spendableNano} or {'over_budget',
-- limit, remaining, resetSeconds, neededNano, budget}. `budget` and `tokens` are as restrictions.lua describes them; a
-- reply without restrictions ends before them.
-- luacheck: read globals maxReservationMultiple

local account = KEYS[1] -- hash: the account
local window = KEYS[2] -- list: its sliding minute
local reservations = KEYS[3] -- hash: reservations of the account's shard by request
local stream = KEYS[4] -- stream: ledger of the shard
local id = ARGV[1] -- of the request
local accountId = ARGV[2] -- of the account
local keyHash = ARGV[3] -- of the caller's API key; '' for one that was authenticated otherwise
local slots = tonumber(ARGV[4]) -- of the sliding minute that a request to the model takes
local slotsTaken = tonumber(ARGV[5]) -- that pre-admission has already taken for this request
local fixed = tonumber(ARGV[6]) -- nano-roubles
local unit = tonumber(ARGV[7]) -- nano-roubles per unit
local requested = tonumber(ARGV[8]) -- units
local minUnits = tonumber(ARGV[9]) -- the account may get fewer than requested, but not fewer than these
local share = tonumber(ARGV[10]) -- thousandths of the spendable balance to reserve before units are reduced
local freeAllowed = ARGV[11] -- '1' if the request may be a free one
local streamBound = tonumber(ARGV[12]) -- entries
local address = ARGV[13] -- of the caller, as in restrictions.lua
local model = ARGV[14] -- of the request; '' for one that calls no model itself, such as a batch, whose lines are checked
local promptTokens = tonumber(ARGV[15]) -- that count towards the tokens per minute

-- include 'rate-window.lua'
-- include 'restrictions.lua'

local balance, reserved, free, freeHeld, limit, used, restrictions

local function checkCaller()
  local ban, key, isRestricted
  balance, reserved, free, freeHeld, limit, ban, key, used, isRestricted =
    unpack(redis.call('HMGET', account, 'bal', 'res', 'free', 'fres', 'rpm', 'ban', 'key', 'win', 'ext'))
  if not balance then return {'unknown'} end
  if ban == '1' then return {'banned'} end
  if keyHash ~= '' and key ~= keyHash then return {'revoked'} end
  limit, used = tonumber(limit), tonumber(used or '0')
  if isRestricted then
    restrictions = openRestrictions()
    return restrictions.checkAccess()
  end
end

local function checkLedger()
  if redis.call('XLEN', stream) >= streamBound then return {'ledger_full'} end
end

-- Takes the slots. They are stored by a later step.
local function takeMinute()
  local rejection
  local needed = math.max(1, math.min(slots, limit)) - slotsTaken
  used, rejection = takeSlots(window, used, limit, needed)
  if rejection then redis.call('HSET', account, 'win', used) end
  return rejection
end

local function replyWith(outcome, ...)
  redis.call('HSET', account, 'win', used)
  return {outcome, limit, limit - used, 60, ...}
end

local function checkModelAndTokens()
  if model == '' then return end
  if not restrictions.isModelAllowed(model) then return replyWith('model_refused') end
  if restrictions.isOverTokenLimit() then return replyWith('tokens_limited', restrictions.describeTokens()) end
end

-- Takes a free request or reserves the maximum cost. `claimed` is stored with the reservation.
local function reserve(claimed)
  local rejection = restrictions and checkModelAndTokens()
  if rejection then return rejection end
  local left = restrictions and restrictions.findLeft()
  free, freeHeld = tonumber(free), tonumber(freeHeld)
  local units, cost, maxCharge, isFree = requested, 0, 0, '0'
  if freeAllowed == '1' and free > freeHeld then
    isFree = '1'
    redis.call('HSET', account, 'win', used, 'last', nowMs, 'fres', freeHeld + 1)
  else
    reserved = tonumber(reserved)
    local funds = tonumber(balance) - reserved
    local spendable = left and math.min(left, funds) or funds
    cost = fixed + unit * units
    local budget = spendable
    if share < 1000 then budget = math.floor(spendable / 1000) * share end
    if cost > budget and unit > 0 then
      units = math.min(requested, math.floor((budget - fixed) / unit))
      if units < minUnits then units = math.min(requested, minUnits) end
      cost = fixed + unit * units
    end
    if cost > spendable then
      local needed = string.format('%.0f', cost)
      if cost <= funds then return replyWith('over_budget', needed, restrictions.describeBudget()) end
      return replyWith('insufficient', needed, string.format('%.0f', funds))
    end
    redis.call('HSET', account, 'win', used, 'last', nowMs, 'res', string.format('%.0f', reserved + cost))
    -- The multiple is a margin for vendors that report more than our estimate. If the balance determines the number of
    -- units, that number is a limit and not an estimate, so the units get no margin.
    maxCharge = cost * maxReservationMultiple
    if share < 1000 then maxCharge = maxCharge - unit * units * (maxReservationMultiple - 1) end
  end
  if restrictions then restrictions.add(cost, promptTokens) end
  cost = string.format('%.0f', cost)
  local reservation = accountId .. ' ' .. cost .. ' ' .. isFree .. ' ' .. nowMs .. string.format(' <%.0f', maxCharge)
  redis.call('HSET', reservations, id, reservation .. claimed)
  local reply = {'ok', limit, limit - used, 60, cost, isFree, units, 0}
  if restrictions then reply[9], reply[10] = restrictions.describeBudget(), restrictions.describeTokens() end
  return reply
end
