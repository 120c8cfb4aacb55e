// decision 0004
import { AppError } from '../../contract/errors.ts';
import { LuaScript } from '../../platform/redis/lua-script.ts';
import { callRedis, type RedisClient } from '../../platform/redis/redis-client.ts';
import { redisKeys } from '../../platform/redis/redis-keys.ts';
import type { TicketedPush } from '../../platform/redis/ticketed-list.ts';
import type { Lane } from './fair-share.ts';

/**
 * Maximum number of interactive chats waiting in each of the two queues, not counting those that workers have taken.
 */
const readyQueueBound = 10_000;

/** The keys of the queues. */
export const readyLists: Readonly<Record<Lane, string>> = {
  quick: redisKeys.readyQueue,
  bulk: redisKeys.bulkReadyQueue,
};

const pushScript = new LuaScript(new URL('./push-ready.lua', import.meta.url), [
  'list',
  'pushed',
  'item',
  'bound',
]);
const cancelScript = new LuaScript(new URL('./cancel-ready.lua', import.meta.url), [
  'list',
  'pushed',
  'ticket',
]);
const takenScript = new LuaScript(new URL('./count-taken.lua', import.meta.url), ['list', 'pushed']);

/**
 * Lightweight dispatch of interactive chats: a bounded list that workers take from as slots become free. It keeps no
 * record of taken items. The api process that waits for the response owns the request and dispatches it again.
 */
export class ReadyQueue {
  readonly #redis: RedisClient;
  readonly #list: string;
  readonly #pushed: string;

  constructor(redis: RedisClient, lane: Lane) {
    this.#redis = redis;
    this.#list = readyLists[lane];
    this.#pushed = redisKeys.pushedTo(this.#list);
  }

  /** @returns the item's ticket. @throws AppError `queue_full` */
  async push(item: string): Promise<number> {
    const values = { ...this.#keys, item, bound: readyQueueBound };
    const ticket = (await callRedis(() => pushScript.run(this.#redis, values))) as number;
    if (ticket === 0) throw new AppError('queue_full');
    return ticket;
  }

  /** Describes the push of an item, for a script that also changes something else. */
  describePush(item: string): TicketedPush {
    return { keys: [this.#list, this.#pushed], bound: readyQueueBound, item };
  }

  /** Cancels a waiting item. @returns false if a worker has already taken it */
  async cancel(ticket: number): Promise<boolean> {
    return (await callRedis(() => cancelScript.run(this.#redis, { ...this.#keys, ticket }))) === 1;
  }

  /** How many items have been taken. Workers have all tickets up to this one. */
  async countTaken(): Promise<number> {
    return (await callRedis(() => takenScript.run(this.#redis, this.#keys))) as number;
  }

  async countWaiting(): Promise<number> {
    return await callRedis(() => this.#redis.llen(this.#list));
  }

  get #keys(): { readonly list: string; readonly pushed: string } {
    return { list: this.#list, pushed: this.#pushed };
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
  const lists = lanes.map((lane) => readyLists[lane]);
  const taken =
    timeoutSeconds === 0
      ? await blocking.lmpop(lists.length, lists, 'LEFT', 'COUNT', count)
      : await blocking.blmpop(timeoutSeconds, lists.length, lists, 'LEFT', 'COUNT', count);
  // A blank item is a request whose caller disconnected while it waited.
  return taken === null ? [] : taken[1].filter((item) => item !== '');
}
