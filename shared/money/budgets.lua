-- decision 0096
--
-- Budgets of an account: how much it may spend in a day, a week or a month. The field `bud` is the operator's budget and
-- `obud` the owner's: `amount period start spent reserved`, in nano-roubles. The period is `d`, `w` or `m`, and `start` the
-- first day of the period that both sums are for. Days are counted from 1970, in UTC. Only accounts with a restriction have
-- the field `ext`. For all others scripts neither read further nor create the functions below.
--
-- A request counts to the period of its admission. What lines of batches have reserved (`lines` of `jobs-held`) counts to
-- the current period, whenever it was reserved.

local function dayOf(ms) return math.floor(tonumber(ms) / 86400000) end

-- Returns the first day of the period that has this day.
local function startOfPeriod(period, day)
  if period == 'd' then return day end
  -- 1970-01-01 was a Thursday.
  if period == 'w' then return day - (day + 3) % 7 end
  -- The day of the month, from 0, in the Gregorian calendar. Years begin in March, and eras of 400 years with a year 0.
  local ofEra = (day + 719468) % 146097
  local year = math.floor((ofEra - math.floor(ofEra / 1460) + math.floor(ofEra / 36524) - math.floor(ofEra / 146096)) / 365)
  local ofYear = ofEra - (365 * year + math.floor(year / 4) - math.floor(year / 100))
  local month = math.floor((5 * ofYear + 2) / 153)
  return day - (ofYear - math.floor((153 * month + 2) / 5))
end

-- Returns the budgets of an account with restrictions, as of now; nil if it has none. `operators` and `owners` are its
-- fields `bud` and `obud`, if they have been read.
local function openBudgets(account, operators, owners)
  if operators == nil then operators, owners = unpack(redis.call('HMGET', account, 'bud', 'obud')) end
  if not operators and not owners then return nil end
  local today = math.floor(tonumber(redis.call('TIME')[1]) / 86400)
  local list = {}

  local function add(field, text)
    if not text then return end
    local amount, period, start, spent, reserved = string.match(text, '^(%d+) (%a) (%d+) (%d+) (%d+)$')
    local current = startOfPeriod(period, today)
    -- The sums of another period are over.
    local isCurrent = tonumber(start) == current
    list[#list + 1] = {field = field, amount = tonumber(amount), period = period, start = current,
      spent = isCurrent and tonumber(spent) or 0, reserved = isCurrent and tonumber(reserved) or 0}
  end

  add('bud', operators)
  add('obud', owners)
  local budgets = {today = today}

  local function isOfPeriod(budget, day) return startOfPeriod(budget.period, day) == budget.start end

  -- Changes the sums of the budgets whose period has the day of the admission.
  function budgets.change(day, reserved, spent)
    for _, budget in ipairs(list) do
      if isOfPeriod(budget, day) then
        -- A clock that was set back may have reset the sum in between.
        budget.reserved = math.max(0, budget.reserved + reserved)
        budget.spent = budget.spent + spent
        redis.call('HSET', account, budget.field, string.format('%.0f %s %.0f %.0f %.0f', budget.amount, budget.period,
          budget.start, budget.spent, budget.reserved))
      end
    end
  end

  -- Returns how much may be reserved, and the budget that has least left. With the day of an admission, returns what the
  -- request may cost: budgets whose period does not have that day count with `ofOthers`, because their sums of it are gone.
  function budgets.findLeft(day, ofOthers)
    local held = redis.call('HGET', (string.gsub(account, ':account:', ':jobs-held:', 1)), 'lines')
    local lines = math.max(0, tonumber(held or '0'))
    local least, tightest
    for _, budget in ipairs(list) do
      local isOther = day and not isOfPeriod(budget, day)
      local left = isOther and ofOthers or math.max(0, budget.amount - budget.spent - budget.reserved - lines)
      if not least or left < least then least, tightest = left, budget end
    end
    return least, tightest
  end

  -- Returns how much could be reserved if nothing else was.
  function budgets.findUnspent()
    local least
    for _, budget in ipairs(list) do
      local unspent = math.max(0, budget.amount - budget.spent)
      least = math.min(least or unspent, unspent)
    end
    return least
  end

  return budgets
end

-- Releases what a request had reserved of the budgets.
local function releaseFromBudgets(account, admittedAt, cost)
  if redis.call('HEXISTS', account, 'ext') == 0 then return end
  local budgets = openBudgets(account)
  if budgets then budgets.change(dayOf(admittedAt), -tonumber(cost), 0) end
end
