import { AppError } from '../contract/errors.ts';
import { callRedis, RedisScript, type RedisClient } from '../redis/redis-client.ts';
import { redisKeys } from '../redis/redis-keys.ts';
import type { Lane } from './fair-share.ts';

/** Interactive chats that may wait, in each of the two queues, beyond those the workers have taken. */
export const readyQueueBound = 10_000;

const listOf: Readonly<Record<Lane, string>> = {
  quick: redisKeys.readyQueue,
  bulk: redisKeys.bulkReadyQueue,
};

/** Appends where there is room; the answer is the item's ticket: how many were ever pushed, this one included. */
const pushScript = new RedisScript(`
if redis.call('LLEN', KEYS[1]) >= tonumber(ARGV[2]) then return 0 end
redis.call('RPUSH', KEYS[1], ARGV[1])
return redis.call('INCR', KEYS[2])
`);

/**
 * Blanks an item that still waits, in its place: the queue is first in, first out, and a ticket's place is known
 * from two counters only while nothing is taken from its middle.
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
 * The light dispatch of interactive chats: a bounded list that workers take from as they have free slots. It keeps
 * no record of what was taken; the api process that waits for an answer owns the request and dispatches it again.
 */
export class ReadyQueue {
  readonly #redis: RedisClient;
  readonly #list: string;
  readonly #keys: readonly string[];

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

  /** @returns whether it still waited. */
  async cancel(ticket: number): Promise<boolean> {
    return (await callRedis(() => cancelScript.run(this.#redis, this.#keys, [ticket]))) === 1;
  }

  /** How many items have been taken: tickets up to this one are with a worker. */
  async countTaken(): Promise<number> {
    return Number(await callRedis(() => takenScript.run(this.#redis, this.#keys, [])));
  }

  async countWaiting(): Promise<number> {
    return await callRedis(() => this.#redis.llen(this.#list));
  }
}

/**
 * Takes at most `count` items of the first of the lanes that has any, oldest first. Waits for them up to `timeoutSeconds`,
 * on a connection of its own; not at all where that is 0.
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
  // A blank is a request whose caller left while it waited.
  return taken === null ? [] : taken[1].filter((item) => item !== '');
}
