import type { Job as BullJob } from 'bullmq';
import { LuaScript } from '../../../shared/platform/redis/lua-script.ts';
import { callRedis, type RedisClient } from '../../../shared/platform/redis/redis-client.ts';
import { redisKeys } from '../../../shared/platform/redis/redis-keys.ts';
import type { WebhookDelivery } from '../../../shared/work/webhook-delivery.ts';
import type { DeliveryLane, LimitedLane } from './delivery-lanes.ts';

/** Equal to the time for which deliveries count as undelivered. */
const lifetimeSeconds = 48 * 60 * 60;

const pausePerWaitingMs = 1_000;

const allLanes: readonly DeliveryLane[] = ['prompt', 'unknown', 'hanging'];

/**
 * Returns the delay after which a waiting delivery is retried if nothing wakes it: a worker may die, or Redis fail,
 * between the end of an attempt and the wake. The delay grows with the number of waiting deliveries, so that at most
 * one per account is retried each second.
 */
export function computePauseMs(waiting: number, minMs: number): number {
  return Math.max(minMs, waiting * pausePerWaitingMs);
}

const joinScript = new LuaScript(new URL('./join-waiting.lua', import.meta.url), [
  'waiting',
  'turns',
  'queuedAt',
  'id',
  'lifetime',
  'accountId',
]);
const removeScript = new LuaScript(new URL('./remove-waiting.lua', import.meta.url), ['id'], {
  itemNames: ['waiting'],
});
const takeOwnScript = new LuaScript(new URL('./take-own-waiting.lua', import.meta.url), [], {
  itemNames: ['waiting'],
});
const takeTurnsScript = new LuaScript(
  new URL('./take-waiting-turns.lua', import.meta.url),
  ['turns', 'count', 'waitingPrefix'],
  { itemNames: ['busyAccount'] },
);

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
  async readPauseMs(accountId: string, lane: DeliveryLane, minMs: number): Promise<number> {
    const key = redisKeys.waitingWebhooks(lane, accountId);
    return computePauseMs((await callRedis(() => this.#redis.zcard(key))) + 1, minMs);
  }

  /** Call this after the delivery was delayed. Otherwise a wake could find it still running and be lost. */
  async join(
    { id, data: { accountId }, timestamp }: BullJob<WebhookDelivery>,
    lane: DeliveryLane,
  ): Promise<void> {
    const waiting = redisKeys.waitingWebhooks(lane, accountId);
    const values = {
      waiting,
      turns: lane === 'prompt' ? waiting : redisKeys.webhookTurns(lane),
      queuedAt: timestamp,
      id: id!,
      lifetime: lifetimeSeconds,
      accountId,
    };
    await callRedis(() => joinScript.run(this.#redis, values));
  }

  /**
   * Removes the delivery when its attempt starts. Otherwise a wake would cut short the pause before its next attempt.
   */
  async remove({ id, data: { accountId } }: BullJob<WebhookDelivery>): Promise<void> {
    const lists = allLanes.map((lane) => ({ waiting: redisKeys.waitingWebhooks(lane, accountId) }));
    await callRedis(() => removeScript.run(this.#redis, { id: id! }, lists));
  }

  /**
   * Wakes the oldest delivery of the account that waits in the first of these lanes with any.
   * @returns whether there was one
   */
  async wakeOwn(accountId: string, lanes: readonly DeliveryLane[]): Promise<boolean> {
    const lists = lanes.map((lane) => ({ waiting: redisKeys.waitingWebhooks(lane, accountId) }));
    for (;;) {
      const deliveryId = await callRedis(() => takeOwnScript.run(this.#redis, {}, lists));
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
    const turns = redisKeys.webhookTurns(lane);
    const waitingPrefix = redisKeys.waitingWebhooks(lane, '');
    const busy = busyAccounts.map((busyAccount) => ({ busyAccount }));
    for (let missing = count; missing > 0;) {
      const values = { turns, count: missing, waitingPrefix };
      const taken = await callRedis(() => takeTurnsScript.run(this.#redis, values, busy));
      const woken = await Promise.all((taken as string[]).map((deliveryId) => this.#wake(deliveryId)));
      missing = woken.filter((isWoken) => !isWoken).length;
    }
  }
}
