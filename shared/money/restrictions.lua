-- decision 0096
--
-- What an account may do, apart from its balance and its requests per minute: the fields `exp` (when its key expires, in
-- ms), `adr` (addresses that may use the key), `mod` and `omod` (models that the operator and the owner allow: `,a,b,`),
-- `tpm` (tokens per minute), and its budgets. `adr` has ranges of addresses, sorted and without overlaps, as pairs of 32
-- hexadecimal digits: `first-last first-last`. An IPv4 address is written as the IPv6 address that it is mapped to.
--
-- Needs `account`, `now` and `nowMs` (rate-window.lua), and `address`: that of the caller as 32 hexadecimal
-- digits, `-` if it is unknown, '' if it is not checked.
--
-- Replies have two descriptions at their end: of the budget that has least left, `field amount left period start`, and of
-- the tokens per minute, `limit remaining resetSeconds waitMs`. They are '' if there is no such limit.

-- include 'allowed-models.lua'
-- include 'budgets.lua'
-- include 'token-window.lua'

-- Reads the restrictions of an account that has some.
local function openRestrictions()
  local expiresAt, addresses, models, ownersModels, tokenLimit, usedTokens, operatorsBudget, ownersBudget =
    unpack(redis.call('HMGET', account, 'exp', 'adr', 'mod', 'omod', 'tpm', 'twin', 'bud', 'obud'))
  tokenLimit = tonumber(tokenLimit)
  local tokenWindow = string.gsub(account, ':account:', ':tpm:', 1)
  if tokenLimit then
    usedTokens = dropBuckets(tokenWindow, tonumber(usedTokens or '0'), now)
    redis.call('HSET', account, 'twin', usedTokens)
  end
  local budgets = openBudgets(account, operatorsBudget, ownersBudget)
  local left, tightest
  if budgets then left, tightest = budgets.findLeft() end
  local restrictions = {}

  local function isAddressAllowed()
    local length = 66 -- of a range, with the space after it
    local low, high = 0, math.floor((#addresses + 1) / length) - 1
    while low <= high do
      local middle = math.floor((low + high) / 2)
      local at = middle * length
      if address < string.sub(addresses, at + 1, at + 32) then high = middle - 1
      elseif address > string.sub(addresses, at + 34, at + 65) then low = middle + 1
      else return true end
    end
    return false
  end

  -- Returns the reply if the key may not be used now or from this address.
  function restrictions.checkAccess()
    if expiresAt and tonumber(expiresAt) <= tonumber(nowMs) then return {'expired', expiresAt} end
    if addresses and address ~= '' and not isAddressAllowed() then return {'address_refused'} end
  end

  function restrictions.isModelAllowed(model) return isModelAllowed(model, models, ownersModels) end

  function restrictions.isOverTokenLimit() return tokenLimit and usedTokens >= tokenLimit end

  -- Returns how much the budgets allow to reserve; nil without a budget.
  function restrictions.findLeft() return left end

  -- Counts an admitted request.
  function restrictions.add(cost, promptTokens)
    if budgets and cost > 0 then
      budgets.change(dayOf(nowMs), cost, 0)
      left = left - cost
    end
    if tokenLimit then
      addTokens(account, promptTokens)
      usedTokens = usedTokens + promptTokens
    end
  end

  function restrictions.describeBudget()
    if not budgets then return '' end
    return string.format('%s %.0f %.0f %s %.0f', tightest.field, tightest.amount, left, tightest.period, tightest.start)
  end

  function restrictions.describeTokens()
    if not tokenLimit then return '' end
    local missing, waitMs, reset = usedTokens - tokenLimit + 1, 0, 0
    for _, bucket in ipairs(redis.call('LRANGE', tokenWindow, 0, -1)) do
      local second, taken = string.match(bucket, '(%d+):(%d+)')
      reset = tonumber(second) + 60 - now
      if missing > 0 then waitMs = (tonumber(second) + 60) * 1000 - tonumber(nowMs) end
      missing = missing - tonumber(taken)
    end
    return string.format('%.0f %.0f %.0f %.0f', tokenLimit, math.max(0, tokenLimit - usedTokens), reset, waitMs)
  end

  return restrictions
end
