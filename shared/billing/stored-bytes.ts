/**
 * Counts the bytes of stored responses in Redis, per account. Responses stored under Idempotency-Keys and those of
 * durable jobs are counted separately: each kind has its own limit and must not use up the other's. The counter is a
 * hash with `sum`, and one field per ten minutes in which keys expire (named by their end, in Unix seconds). Expiring
 * keys are not subtracted, so `sum` is an upper bound, and it is recomputed from the fields when a limit is reached.
 */

/**
 * Above this, further requests of the account with an Idempotency-Key are rejected. Jobs are not, because their number
 * per account and day is limited, and so are the bytes that each stores in Redis.
 */
export const maxStoredBytesPerAccount = 64_000_000;

/**
 * Requests admitted below `maxStoredBytesPerAccount` continue to produce output. Above this limit, their output is no
 * longer stored and they end, because a full Redis could not admit any requests. Job responses above it go to the
 * object store, and the jobs fail while the store is down.
 */
export const maxStoredBytesInFlight = 4 * maxStoredBytesPerAccount;

/** Above this, for either kind, the account's smaller responses are also moved out of Redis once they are complete. */
export const moveThresholdBytes = maxStoredBytesPerAccount / 2;

/** Maximum size of one response. */
export const maxStoredBytesPerResponse = 64_000_000;

/** Lua functions. All keys of the same ten minutes expire together, at the end of those minutes. */
export const storedBytesFunctions = `
local function endOfBucket(seconds) return (math.floor(seconds / 600) + 1) * 600 end

local function changeStoredBytes(counter, expiresAt, by)
  redis.call('HINCRBY', counter, expiresAt, by)
  redis.call('HINCRBY', counter, 'sum', by)
  if redis.call('TTL', counter) == -1 then redis.call('EXPIREAT', counter, expiresAt)
  else redis.call('EXPIREAT', counter, expiresAt, 'GT') end
end

local function storedBytesExceed(counter, bound)
  if tonumber(redis.call('HGET', counter, 'sum') or '0') <= bound then return false end
  local now, sum = tonumber(redis.call('TIME')[1]), 0
  local fields = redis.call('HGETALL', counter)
  for i = 1, #fields, 2 do
    if fields[i] ~= 'sum' then
      if tonumber(fields[i]) <= now then redis.call('HDEL', counter, fields[i])
      else sum = sum + tonumber(fields[i + 1]) end
    end
  end
  redis.call('HSET', counter, 'sum', string.format('%.0f', sum))
  return sum > bound
end
`;
