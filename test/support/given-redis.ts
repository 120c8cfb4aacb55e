import { Cluster, type Redis } from 'ioredis';
import { createRedis, waitUntilReady } from '../../shared/redis/redis-client.ts';
import { createLogger } from '../../shared/runtime/logger.ts';

/** What the product's keys begin with; BullMQ's are the second. */
const ourPrefixes = ['mg:', '{bull}'];
const scanCount = 1_000;

let isBorrowed = false;

/**
 * Makes the Redis that `REDIS_URL` names empty for a test. The product's keys have fixed names, so one test at a time has
 * it: another one of the same process starts a redis-server of its own.
 * @returns what empties it again and gives it back; null where another test of this process has it now
 * @throws Error where it holds keys that are not the product's
 */
export async function borrowGivenRedis(url: string): Promise<(() => Promise<void>) | null> {
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
    // One by one: on a Cluster they are on many nodes.
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
