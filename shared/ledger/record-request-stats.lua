-- Adds sums to the current bucket of each window. Redis's clock determines the current bucket, so the script completes
-- the buckets' names. Their common tag keeps them on one node.

local modelsPrefix = KEYS[1] -- of the buckets of sums by model
local hoursPrefix = KEYS[2] -- of the buckets of sums by model of an hour
local totalsPrefix = KEYS[3] -- of the buckets of sums over all models
local modelsSeconds = ARGV[1] -- length of a bucket
local modelsLifetime = ARGV[2] -- of a bucket, in seconds
local hoursSeconds = ARGV[3] -- length of a bucket
local hoursLifetime = ARGV[4] -- of a bucket, in seconds
local totalsSeconds = ARGV[5] -- length of a bucket
local totalsLifetime = ARGV[6] -- of a bucket, in seconds

local now = tonumber(redis.call('TIME')[1])
local models = modelsPrefix .. math.floor(now / modelsSeconds)
local hours = hoursPrefix .. math.floor(now / hoursSeconds)
local totals = totalsPrefix .. math.floor(now / totalsSeconds)
for eachArg = 6, #ARGV - 1, 3 do
  local isTotal = ARGV[eachArg + 1] -- '1' for a sum over all models
  local field = ARGV[eachArg + 2] -- name of the sum
  local amount = ARGV[eachArg + 3] -- to add
  if isTotal == '1' then
    redis.call('HINCRBY', totals, field, amount)
  else
    redis.call('HINCRBY', models, field, amount)
    redis.call('HINCRBY', hours, field, amount)
  end
end
redis.call('EXPIRE', models, modelsLifetime)
redis.call('EXPIRE', hours, hoursLifetime)
redis.call('EXPIRE', totals, totalsLifetime)
