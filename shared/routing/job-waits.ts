import { redisKeys } from '../redis/redis-keys.ts';

/** Longer than waiting callers are recorded, so that jobs keep their place even if a busy worker asks again late. */
const keptMs = 1_000;
/** After a grant, a process asks at once for the accounts that still wait. */
const askedAgainMs = 50;

const [sinceName, untilName] = [redisKeys.jobsWaitSince(''), redisKeys.jobsWaitUntil('')];

/**
 * Part of the acquire script: the accounts whose durable jobs wait for slots of a set, in any worker. A worker that has
 * just released a slot asks first and would win it again each time, so the account that has waited longest goes next. A
 * slot is kept for each account ahead, but only for a quarter of all slots, because their workers take up to a tenth of
 * a second to ask. All of this is one function, because Redis recreates each function of a script in each run.
 *
 * - `ahead`: how many accounts have waited longer than this one
 * - `granted`: the account got its slot and starts waiting anew when it asks again
 * - `refused`: these accounts lacked a slot of this set
 */
export const jobWaits = `
local function jobWaits(what, calls, a)
  local since, untils = calls .. '${sinceName}', calls .. '${untilName}'
  if what == 'ahead' then
    local all = redis.call('ZCARD', since)
    if all == 0 then return 0 end
    for _, range in ipairs({ { '-inf', now }, { '(' .. now + ${keptMs}, '+inf' } }) do
      for _, gone in ipairs(redis.call('ZRANGEBYSCORE', untils, range[1], range[2])) do
        redis.call('ZREM', since, gone)
        redis.call('ZREM', untils, gone)
        all = all - 1
      end
    end
    local own = redis.call('ZSCORE', since, ARGV[7 + a])
    return own and redis.call('ZCOUNT', since, '-inf', '(' .. own) or all
  end
  if what == 'granted' then
    redis.call('ZREM', since, ARGV[7 + a])
    redis.call('ZREM', untils, ARGV[7 + a])
    -- The call may serve the others that were asked for as well.
    for b = 1, accounts do
      if b ~= a then redis.call('ZADD', untils, 'XX', 'LT', now + ${askedAgainMs}, ARGV[7 + b]) end
    end
    return
  end
  for _, b in ipairs(a) do
    redis.call('ZADD', since, 'NX', now, ARGV[7 + b])
    redis.call('ZADD', untils, now + ${keptMs}, ARGV[7 + b])
  end
  redis.call('PEXPIRE', since, ${keptMs})
  redis.call('PEXPIRE', untils, ${keptMs})
end`;
