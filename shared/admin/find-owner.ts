import { callRedis } from '../platform/redis/redis-client.ts';
import type { AdminDeps } from './admin-deps.ts';

/** Accounts that are checked together. */
const pageSize = 500;

/**
 * Finds the account whose key of this name is in Redis. Jobs and batches are stored by account, and an operator may know
 * only their ids. Takes about a second per 50 000 accounts.
 * @returns null if no account has it
 */
export async function findOwner(
  { accounts, redis }: Pick<AdminDeps, 'accounts' | 'redis'>,
  keyOf: (accountId: string) => string,
): Promise<string | null> {
  let page: string[] = [];
  const check = async (): Promise<string | null> => {
    const exist = await Promise.all(page.map((id) => callRedis(() => redis.exists(keyOf(id)))));
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
