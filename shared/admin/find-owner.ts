import { callRedis, type RedisClient } from '../platform/redis/redis-client.ts';
import { redisKeys, shardCount } from '../platform/redis/redis-keys.ts';
import type { AdminDeps } from './admin-deps.ts';

const shards = Array.from({ length: shardCount }, (_, shard) => shard);

/**
 * Finds the account of a job or a batch, which are stored by account: an operator may know only their ids. Asks each
 * shard once.
 * @returns null if there is none, or if a release that did not note owners created it
 */
export async function findOwner(redis: RedisClient, id: string): Promise<string | null> {
  const owners = await Promise.all(
    shards.map((shard) => callRedis(() => redis.hget(redisKeys.jobOwners(shard), id))),
  );
  return owners.find((owner) => owner !== null) ?? null;
}

/** Accounts that are checked together. */
const pageSize = 500;

/**
 * Like `findOwner`. Also finds what earlier releases created, by asking for each account whether it has a key of this
 * name in Redis: about a second per 50 000 accounts, so it is only for commands.
 */
export async function searchOwner(
  { accounts, redis }: Pick<AdminDeps, 'accounts' | 'redis'>,
  id: string,
  keyOf: (accountId: string) => string,
): Promise<string | null> {
  const known = await findOwner(redis, id);
  if (known !== null) return known;
  let page: string[] = [];
  const check = async (): Promise<string | null> => {
    const exist = await Promise.all(page.map((one) => callRedis(() => redis.exists(keyOf(one)))));
    const owner = page[exist.indexOf(1)] ?? null;
    page = [];
    return owner;
  };
  for await (const { _id } of accounts.list()) {
    page.push(_id);
    if (page.length < pageSize) continue;
    const owner = await check();
    if (owner !== null) return owner;
  }
  return await check();
}
