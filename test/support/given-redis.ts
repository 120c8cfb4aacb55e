import { Cluster, type Redis } from 'ioredis';
import { createRedis, waitUntilReady } from '../../shared/platform/redis/redis-client.ts';
import { createLogger } from '../../shared/platform/runtime/logger.ts';

/** Prefixes of the product's keys; the second is BullMQ's. */
const ourPrefixes = ['mg:', '{bull}'];
const scanCount = 1_000;

let isBorrowed = false;

/**
 * Empties the Redis at `REDIS_URL` for a test. The product's keys have fixed names, so only one test at a time can use
 * it: another test in the same process starts its own redis-server.
 * @returns a function that empties it again and releases it; null if another test in this process is using it
 * @throws Error if it contains keys that are not the product's
 */
export async function claimSharedRedis(url: string): Promise<(() => Promise<void>) | null> {
  if (isBorrowed) return null;
  isBorrowed = true;
  try {
    await removeOurKeys(url);
  } catch (error) {
    isBorrowed = false;
    throw error;
  }
  return async () => {
    try {
      await removeOurKeys(url);
    } finally {
      isBorrowed = false;
    }
  };
}

async function removeOurKeys(url: string): Promise<void> {
  const client = createRedis(url, 'commands', createLogger('test', 'silent'));
  try {
    await waitUntilReady(client);
    const nodes = client instanceof Cluster ? client.nodes('master') : [client];
    const keys: string[] = [];
    for (const node of nodes) for await (const some of scan(node)) keys.push(...some);
    const foreign = keys.find((key) => !ourPrefixes.some((prefix) => key.startsWith(prefix)));
    if (foreign !== undefined) {
      throw new Error(
        `The Redis of REDIS_URL holds keys that are not the gateway's, such as "${foreign}". The tests delete ` +
          `everything of the gateway in it: give them a Redis of their own, or unset REDIS_URL.`,
      );
    }
    // Deleted one by one, because on a Cluster the keys are on several nodes.
    for (const key of keys) await client.unlink(key);
  } finally {
    client.disconnect();
  }
}

async function* scan(node: Redis): AsyncGenerator<string[]> {
  let cursor = '0';
  do {
    const [next, keys] = await node.scan(cursor, 'COUNT', scanCount);
    yield keys;
    cursor = next;
  } while (cursor !== '0');
}
