-- Redis's clock. Scripts use it instead of the clocks of the machines, so those need not agree. Defines `nowMs`.

local time = redis.call('TIME')
local nowMs = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
