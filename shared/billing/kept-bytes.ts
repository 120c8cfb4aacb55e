/**
 * What kept answers take of Redis, by account: those under Idempotency-Keys, and apart from them those of durable jobs, which
 * have bounds of their own and must not use up the other's. A hash counts them: `sum`, and one field for each ten minutes in
 * which keys expire (its end, in Unix seconds). Nobody subtracts a key that expires; `sum` is therefore an upper bound, and
 * it is computed again from the fields when a bound is reached.
 */

/**
 * Above this, further requests of the account with an Idempotency-Key are refused. Jobs are not: how many an account may make
 * in a day is bounded, and so is what is left in Redis of each.
 */
export const maxKeptBytesPerAccount = 64_000_000;

/**
 * Requests that were admitted below that bound go on producing output. Above this one their output is not kept any more,
 * and they end: a full Redis would admit nobody. Answers of jobs go to the object store above it, and fail while that is away.
 */
export const maxKeptBytesUnderWay = 4 * maxKeptBytesPerAccount;

/** Above this, of one kind, smaller answers of the account leave Redis as well once they have ended. */
export const crowdedBytes = maxKeptBytesPerAccount / 2;

/** Of one answer. */
export const maxKeptBytesPerAnswer = 64_000_000;

/** Lua: all keys of one ten minutes expire together, at their end. */
export const keptBytesFunctions = `
local function endOfBucket(seconds) return (math.floor(seconds / 600) + 1) * 600 end

local function changeKeptBytes(counter, expiresAt, by)
  redis.call('HINCRBY', counter, expiresAt, by)
  redis.call('HINCRBY', counter, 'sum', by)
  if redis.call('TTL', counter) == -1 then redis.call('EXPIREAT', counter, expiresAt)
  else redis.call('EXPIREAT', counter, expiresAt, 'GT') end
end

local function keptBytesExceed(counter, bound)
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
