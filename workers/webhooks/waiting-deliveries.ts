import type { Job as BullJob } from 'bullmq';
import { callRedis, RedisScript, type RedisClient } from '../../shared/redis/redis-client.ts';
import { redisKeys } from '../../shared/redis/redis-keys.ts';
import type { WebhookDelivery } from '../../shared/webhooks/webhook-delivery.ts';
import type { Lane, LimitedLane } from './delivery-lanes.ts';

/** Equal to the time for which deliveries count as undelivered. */
const lifetimeSeconds = 48 * 60 * 60;

const pausePerWaitingMs = 1_000;

const allLanes: readonly Lane[] = ['prompt', 'unknown', 'hanging'];

/**
 * Returns the delay after which a waiting delivery is retried if nothing wakes it: a worker may die, or Redis fail,
 * between the end of an attempt and the wake. The delay grows with the number of waiting deliveries, so that at most
 * one per account is retried each second.
 */
export function computePauseMs(waiting: number, minMs: number): number {
  return Math.max(minMs, waiting * pausePerWaitingMs);
}

/** An account that has a turn already keeps it. */
const joinScript = new RedisScript(`
redis.call('ZADD', KEYS[1], ARGV[1], ARGV[2])
redis.call('EXPIRE', KEYS[1], ARGV[3])
if KEYS[2] then
  local now = redis.call('TIME')
  redis.call('ZADD', KEYS[2], 'NX', now[1] * 1000000 + now[2], ARGV[4])
  redis.call('EXPIRE', KEYS[2], ARGV[3])
end
`);

const removeScript = new RedisScript(`
for _, key in ipairs(KEYS) do redis.call('ZREM', key, ARGV[1]) end
`);

/** Takes the oldest delivery of the first list that is not empty. */
const takeOwnScript = new RedisScript(`
for _, key in ipairs(KEYS) do
  local taken = redis.call('ZPOPMIN', key)
  if taken[1] then return taken[1] end
end
return false
`);

/**
 * Takes the oldest delivery of each of the next accounts, up to a number of accounts. An account with more deliveries
 * moves to the end of the turns. Accounts in ARGV from the third on are passed over and keep their turns.
 */
const takeTurnsScript = new RedisScript(`
local count = tonumber(ARGV[1])
local busy = {}
for i = 3, #ARGV do busy[ARGV[i]] = true end
local taken = {}
for _, account in ipairs(redis.call('ZRANGE', KEYS[1], 0, count + #ARGV - 3)) do
  if #taken == count then break end
  if not busy[account] then
    local list = ARGV[2] .. account
    local oldest = redis.call('ZPOPMIN', list)
    if oldest[1] then taken[#taken + 1] = oldest[1] end
    if redis.call('EXISTS', list) == 1 then
      local now = redis.call('TIME')
      redis.call('ZADD', KEYS[1], now[1] * 1000000 + now[2], account)
    else
      redis.call('ZREM', KEYS[1], account)
    end
  end
end
return taken
`);

/**
 * Makes a delayed delivery due.
 * @returns false if it is no longer delayed, or is gone
 */
export type WakeDelivery = (deliveryId: string) => Promise<boolean>;

/**
 * The deliveries that wait for a place, by account and lane, oldest first. In the lanes with a limit, accounts take
 * turns. Deliveries are woken when attempts end, so the load on Redis per waiting delivery does not grow with its wait.
 */
export class WaitingDeliveries {
  readonly #redis: RedisClient;
  readonly #wake: WakeDelivery;

  constructor(redis: RedisClient, wake: WakeDelivery) {
    this.#redis = redis;
    this.#wake = wake;
  }

  /** Returns the delay for the next delivery that joins. */
  async readPauseMs(accountId: string, lane: Lane, minMs: number): Promise<number> {
    const key = redisKeys.waitingWebhooks(lane, accountId);
    return computePauseMs((await callRedis(() => this.#redis.zcard(key))) + 1, minMs);
  }

  /** Call this after the delivery was delayed. Otherwise a wake could find it still running and be lost. */
  async join({ id, data: { accountId }, timestamp }: BullJob<WebhookDelivery>, lane: Lane): Promise<void> {
    const keys = [redisKeys.waitingWebhooks(lane, accountId)];
    if (lane !== 'prompt') keys.push(redisKeys.webhookTurns(lane));
    await callRedis(() => joinScript.run(this.#redis, keys, [timestamp, id!, lifetimeSeconds, accountId]));
  }

  /**
   * Removes the delivery when its attempt starts. Otherwise a wake would cut short the pause before its next attempt.
   */
  async remove({ id, data: { accountId } }: BullJob<WebhookDelivery>): Promise<void> {
    const keys = allLanes.map((lane) => redisKeys.waitingWebhooks(lane, accountId));
    await callRedis(() => removeScript.run(this.#redis, keys, [id!]));
  }

  /**
   * Wakes the oldest delivery of the account that waits in the first of these lanes with any.
   * @returns whether there was one
   */
  async wakeOwn(accountId: string, lanes: readonly Lane[]): Promise<boolean> {
    const keys = lanes.map((lane) => redisKeys.waitingWebhooks(lane, accountId));
    for (;;) {
      const deliveryId = await callRedis(() => takeOwnScript.run(this.#redis, keys, []));
      if (typeof deliveryId !== 'string') return false;
      if (await this.#wake(deliveryId)) return true;
    }
  }

  /**
   * Wakes one delivery of each of the next accounts.
   * @param count maximum number of accounts
   * @param busyAccounts accounts that are passed over
   */
  async wakeTurns(lane: LimitedLane, count: number, busyAccounts: readonly string[]): Promise<void> {
    const keys = [redisKeys.webhookTurns(lane)];
    const lists = redisKeys.waitingWebhooks(lane, '');
    for (let missing = count; missing > 0;) {
      const args = [missing, lists, ...busyAccounts];
      const taken = await callRedis(() => takeTurnsScript.run(this.#redis, keys, args));
      const woken = await Promise.all((taken as string[]).map((deliveryId) => this.#wake(deliveryId)));
      missing = woken.filter((isWoken) => !isWoken).length;
    }
  }
}
