-- Sets the admission time of a reservation dated in the future to now. Otherwise it could not become an orphan until
-- the clock caught up.

local reservations = KEYS[1] -- hash: reservations of a shard by request
local id = ARGV[1] -- of the request
local reservation = ARGV[2] -- as it was read; if it has changed since, it stays

-- include '../platform/redis/clock.lua'

if redis.call('HGET', reservations, id) ~= reservation then return end
local before, after = string.match(reservation, '^(%S+ %d+ %d )%d+(.*)$')
redis.call('HSET', reservations, id, before .. string.format('%.0f', nowMs) .. after)
