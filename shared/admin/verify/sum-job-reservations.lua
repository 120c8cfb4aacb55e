-- Sums the reservations of an account's durable jobs and batches.
--
-- Replies {cost, free, lines, days, summedCost, summedFree, summedLines, summedDays}: the stored counters, and the sums over
-- the jobs and batches. `lines` is the part of lines of batches; `days` has what jobs of each day have reserved, as
-- `day:nano day:nano`. All sums but that of lines are false if there are too many jobs.
-- luacheck: read globals maxSummedJobs

local prefix = KEYS[1] -- of the keys of the account's shard
local accountId = ARGV[1] -- of the account

local function whole(number) return string.format('%.0f', number) end

local days = {}
local held = redis.call('HGETALL', prefix .. 'jobs-held:' .. accountId)
local stored = {}
for i = 1, #held, 2 do
  stored[held[i]] = held[i + 1]
  local day = string.match(held[i], '^day:(%d+)$')
  if day then days[#days + 1] = day .. ':' .. held[i + 1] end
end

local summedLines = 0
for _, id in ipairs(redis.call('ZRANGE', prefix .. 'batches-open:' .. accountId, 0, -1)) do
  for _, slice in ipairs(redis.call('HVALS', prefix .. 'batch-slices:' .. accountId .. ':' .. id)) do
    summedLines = summedLines + tonumber(string.match(slice, '^%d+ %d+ %d+ %S+ %d+ %d+ (%d+)'))
  end
end
local reply = {stored.cost or false, stored.free or false, stored.lines or false, table.concat(days, ' '), false, false,
  whole(summedLines), false}

local queued, active = prefix .. 'jobs:' .. accountId .. ':q', prefix .. 'jobs:' .. accountId .. ':a'
if redis.call('ZCARD', queued) + redis.call('ZCARD', active) > maxSummedJobs then return reply end
local summedCost, summedFree, byDay = summedLines, 0, {}
for _, list in ipairs({queued, active}) do
  for _, id in ipairs(redis.call('ZRANGE', list, 0, -1)) do
    local hold = redis.call('HGET', prefix .. 'job:' .. accountId .. ':' .. id, 'hold')
    local amount, isFree, admittedAt = string.match(hold or '', '^(%d+) (%d) (%d+)')
    if isFree == '1' then summedFree = summedFree + 1
    elseif amount and amount ~= '0' then
      local day = math.floor(tonumber(admittedAt) / 86400000)
      summedCost = summedCost + tonumber(amount)
      byDay[day] = (byDay[day] or 0) + tonumber(amount)
    end
  end
end
local summedDays = {}
for day, amount in pairs(byDay) do summedDays[#summedDays + 1] = whole(day) .. ':' .. whole(amount) end
reply[5], reply[6], reply[8] = whole(summedCost), whole(summedFree), table.concat(summedDays, ' ')
return reply
