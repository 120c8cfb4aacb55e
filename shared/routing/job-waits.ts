import { redisKeys } from '../redis/redis-keys.ts';

/**
 * Lifetime of an entry. Longer than for waiting callers, so that jobs keep their position if a busy worker retries
 * late.
 */
const entryMs = 1_000;
/** Lifetime of the other accounts' entries after a grant: their worker tries again for them immediately. */
const retryMs = 50;

const [sinceName, untilName] = [redisKeys.jobsWaitSince(''), redisKeys.jobsWaitUntil('')];

/**
 * Part of the acquire script: the accounts whose durable jobs wait for slots of a set, in any worker. A worker that has
 * just released a slot would be the first to try and would get it again each time, so the account that has waited
 * longest goes next. A slot is reserved for each account ahead, up to a quarter of all slots, because their workers
 * take up to a tenth of a second to try. All of this is one function, because Redis recreates every function of a
 * script each time it runs.
 *
 * `a` is the number of the account in the script's arguments; for `refused`, a list of such numbers. The actions are:
 *
 * - `ahead`: how many accounts have waited longer than this one
 * - `granted`: the account got its slot; if it tries again, its wait starts from zero
 * - `refused`: these accounts found no free slot in this set
 */
export const jobWaits = `
local function jobWaits(action, leases, a)
  local since, untils = leases .. '${sinceName}', leases .. '${untilName}'
  if action == 'ahead' then
    local all = redis.call('ZCARD', since)
    if all == 0 then return 0 end
    for _, range in ipairs({ { '-inf', now }, { '(' .. now + ${entryMs}, '+inf' } }) do
      for _, expired in ipairs(redis.call('ZRANGEBYSCORE', untils, range[1], range[2])) do
        redis.call('ZREM', since, expired)
        redis.call('ZREM', untils, expired)
        all = all - 1
      end
    end
    local waitsSince = redis.call('ZSCORE', since, ARGV[7 + a])
    return waitsSince and redis.call('ZCOUNT', since, '-inf', '(' .. waitsSince) or all
  end
  if action == 'granted' then
    redis.call('ZREM', since, ARGV[7 + a])
    redis.call('ZREM', untils, ARGV[7 + a])
    -- The call may also serve the other accounts of this attempt.
    for b = 1, accounts do
      if b ~= a then redis.call('ZADD', untils, 'XX', 'LT', now + ${retryMs}, ARGV[7 + b]) end
    end
    return
  end
  for _, b in ipairs(a) do
    redis.call('ZADD', since, 'NX', now, ARGV[7 + b])
    redis.call('ZADD', untils, now + ${entryMs}, ARGV[7 + b])
  end
  redis.call('PEXPIRE', since, ${entryMs})
  redis.call('PEXPIRE', untils, ${entryMs})
end`;
