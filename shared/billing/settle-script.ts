import { RedisScript, type RedisClient } from '../redis/redis-client.ts';
import { redisKeys, shardOf } from '../redis/redis-keys.ts';
import type { UsageEvent } from '../ledger/usage-event.ts';

/**
 * Settlement: ends a reservation, debits the exact cost, appends the usage event. The reservation itself is what
 * makes it repeatable: it is taken away by the first settlement, and without one nothing happens. More than was
 * reserved is debited only from what no other request holds; the rest is the shortfall.
 */
const script = new RedisScript(`
local account, reservations, stream = KEYS[1], KEYS[2], KEYS[3]
local id, wanted, keepsFree, event, log = ARGV[1], tonumber(ARGV[2]), ARGV[3], ARGV[4], ARGV[5]
local held = redis.call('HGET', reservations, id)
if not held then return {'absent'} end
redis.call('HDEL', reservations, id)
local reserved, isFree = string.match(held, '^%S+ (%d+) (%d)')
local cost, shortfall = 0, 0
if isFree == '1' then
  redis.call('HINCRBY', account, 'fres', -1)
  if keepsFree == '0' then redis.call('HINCRBY', account, 'free', -1) end
else
  if reserved ~= '0' then redis.call('HINCRBY', account, 'res', '-' .. reserved) end
  cost = wanted
  if cost > tonumber(reserved) then
    local a = redis.call('HMGET', account, 'bal', 'res')
    local spendable = math.max(0, tonumber(a[1]) - tonumber(a[2]))
    if cost > spendable then
      cost = math.max(spendable, tonumber(reserved))
      shortfall = wanted - cost
    end
  end
  if cost > 0 then redis.call('HINCRBY', account, 'bal', '-' .. string.format('%.0f', cost)) end
end
cost = string.format('%.0f', cost)
if isFree == '1' and keepsFree == '1' then isFree = '0' end
if log == '1' then
  redis.call('XADD', stream, '*', 'kind', 'charge', 'cost', cost,
    'shortfall', string.format('%.0f', shortfall), 'free', isFree,
    'ordinal', redis.call('HINCRBY', account, 'charges', 1), 'event', event)
end
return {'settled', cost, isFree}
`);

export interface Settlement {
  /** False where the reservation had ended before: nothing was charged now. */
  readonly settled: boolean;
  readonly costNano: bigint;
  /** Paid with a free request. */
  readonly free: boolean;
}

/**
 * @param costNano the exact cost; zero where nothing is charged
 * @param keepsFree a free request that was held goes back to the account (it failed before any output)
 */
export async function runSettlement(
  redis: RedisClient,
  event: UsageEvent,
  costNano: bigint,
  keepsFree: boolean,
): Promise<Settlement> {
  return await settle(redis, event.accountId, event.requestId, costNano, keepsFree, JSON.stringify(event));
}

/** Ends a reservation for which no model was asked: nothing is charged, and no row is logged. */
export async function releaseReservation(
  redis: RedisClient,
  accountId: string,
  requestId: string,
): Promise<Settlement> {
  return await settle(redis, accountId, requestId, 0n, true, null);
}

async function settle(
  redis: RedisClient,
  accountId: string,
  requestId: string,
  costNano: bigint,
  keepsFree: boolean,
  event: string | null,
): Promise<Settlement> {
  const shard = shardOf(accountId);
  const [outcome, cost, free] = (await script.run(
    redis,
    [redisKeys.account(accountId), redisKeys.reservations(shard), redisKeys.ledgerStream(shard)],
    [requestId, costNano.toString(), keepsFree ? 1 : 0, event ?? '', event === null ? 0 : 1],
  )) as [string, string?, string?];
  return { settled: outcome === 'settled', costNano: BigInt(cost ?? '0'), free: free === '1' };
}
