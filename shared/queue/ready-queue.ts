import { AppError } from '../contract/errors.ts';
import { callRedis, RedisScript, type RedisClient } from '../redis/redis-client.ts';
import { redisKeys } from '../redis/redis-keys.ts';
import { pushFunction, type TicketedPush } from '../redis/ticketed-list.ts';
import type { Lane } from './fair-share.ts';

/**
 * Maximum number of interactive chats waiting in each of the two queues, not counting those that workers have taken.
 */
export const readyQueueBound = 10_000;

const listOf: Readonly<Record<Lane, string>> = {
  quick: redisKeys.readyQueue,
  bulk: redisKeys.bulkReadyQueue,
};

const pushScript = new RedisScript(`${pushFunction}
return push(KEYS[1], KEYS[2], ARGV[2], ARGV[1])
`);

/**
 * Blanks a waiting item in place. Removing it would shift the items behind it, and the position of their tickets could
 * no longer be computed.
 */
const cancelScript = new RedisScript(`
local taken = tonumber(redis.call('GET', KEYS[2]) or '0') - redis.call('LLEN', KEYS[1])
local index = tonumber(ARGV[1]) - taken - 1
if index < 0 or index >= redis.call('LLEN', KEYS[1]) then return 0 end
redis.call('LSET', KEYS[1], index, '')
return 1
`);

const takenScript = new RedisScript(`
return tonumber(redis.call('GET', KEYS[2]) or '0') - redis.call('LLEN', KEYS[1])
`);

/**
 * Lightweight dispatch of interactive chats: a bounded list that workers take from as slots become free. It keeps no
 * record of taken items. The api process that waits for the response owns the request and dispatches it again.
 */
export class ReadyQueue {
  readonly #redis: RedisClient;
  readonly #list: string;
  readonly #keys: readonly [list: string, pushed: string];

  constructor(redis: RedisClient, lane: Lane) {
    this.#redis = redis;
    this.#list = listOf[lane];
    this.#keys = [this.#list, redisKeys.pushedTo(this.#list)];
  }

  /** @returns the item's ticket. @throws AppError `queue_full` */
  async push(item: string): Promise<number> {
    const ticket = Number(
      await callRedis(() => pushScript.run(this.#redis, this.#keys, [item, readyQueueBound])),
    );
    if (ticket === 0) throw new AppError('queue_full');
    return ticket;
  }

  /** Describes the push of an item, for a script that also changes something else. */
  describePush(item: string): TicketedPush {
    return { keys: this.#keys, bound: readyQueueBound, item };
  }

  /** Cancels a waiting item. @returns false if a worker has already taken it */
  async cancel(ticket: number): Promise<boolean> {
    return (await callRedis(() => cancelScript.run(this.#redis, this.#keys, [ticket]))) === 1;
  }

  /** How many items have been taken. Workers have all tickets up to this one. */
  async countTaken(): Promise<number> {
    return Number(await callRedis(() => takenScript.run(this.#redis, this.#keys, [])));
  }

  async countWaiting(): Promise<number> {
    return await callRedis(() => this.#redis.llen(this.#list));
  }
}

/**
 * Takes at most `count` items of the first lane that has any, oldest first. Waits up to `timeoutSeconds` for them,
 * which needs a separate connection; with 0 it does not wait.
 */
export async function takeReady(
  blocking: RedisClient,
  lanes: readonly Lane[],
  count: number,
  timeoutSeconds: number,
): Promise<string[]> {
  const lists = lanes.map((lane) => listOf[lane]);
  const taken =
    timeoutSeconds === 0
      ? await blocking.lmpop(lists.length, lists, 'LEFT', 'COUNT', count)
      : await blocking.blmpop(timeoutSeconds, lists.length, lists, 'LEFT', 'COUNT', count);
  // A blank item is a request whose caller disconnected while it waited.
  return taken === null ? [] : taken[1].filter((item) => item !== '');
}
