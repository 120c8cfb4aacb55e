-- Adds sums to the current bucket of each window. Redis's clock determines the current bucket, so the script completes
-- the buckets' names. Their common tag keeps them on one node.

local shortPrefix = KEYS[1] -- of the shorter buckets of sums by model
local longPrefix = KEYS[2] -- of the longer buckets of sums by model
local totalsPrefix = KEYS[3] -- of the buckets of sums over all models
local shortSeconds = ARGV[1] -- length of a bucket
local shortLifetime = ARGV[2] -- of a bucket, in seconds
local longSeconds = ARGV[3] -- length of a bucket
local longLifetime = ARGV[4] -- of a bucket, in seconds
local totalsSeconds = ARGV[5] -- length of a bucket
local totalsLifetime = ARGV[6] -- of a bucket, in seconds

local now = tonumber(redis.call('TIME')[1])
local short = shortPrefix .. math.floor(now / shortSeconds)
local long = longPrefix .. math.floor(now / longSeconds)
local totals = totalsPrefix .. math.floor(now / totalsSeconds)
for eachArg = 6, #ARGV - 1, 3 do
  local isTotal = ARGV[eachArg + 1] -- '1' for a sum over all models
  local field = ARGV[eachArg + 2] -- name of the sum
  local amount = ARGV[eachArg + 3] -- to add
  if isTotal == '1' then
    redis.call('HINCRBY', totals, field, amount)
  else
    redis.call('HINCRBY', short, field, amount)
    redis.call('HINCRBY', long, field, amount)
  end
end
redis.call('EXPIRE', short, shortLifetime)
redis.call('EXPIRE', long, longLifetime)
redis.call('EXPIRE', totals, totalsLifetime)
