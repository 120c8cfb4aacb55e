import { randomBytes, randomUUID } from 'node:crypto';
import test, { type ExecutionContext } from 'ava';
import {
  createRedis,
  waitUntilReady,
  type RedisClient,
} from '../../../shared/platform/redis/redis-client.ts';
import { redisKeys } from '../../../shared/platform/redis/redis-keys.ts';
import { createLogger } from '../../../shared/platform/runtime/logger.ts';
import { countCachedVectors, runStoreVectors } from '../../../shared/work/store-vectors-script.ts';
import { startTestRedis } from '../../support/redis.ts';
import { waitFor } from '../../support/wait-for.ts';

/** Compares the memory that we count for cached vectors with the memory that Redis reports. */

const log = createLogger('test', 'silent');
const modelId = 'text-embedding-3-small';
const maxBytes = 12_000_000;

async function connect(url: string): Promise<RedisClient> {
  const client = createRedis(url, 'commands', log);
  await waitUntilReady(client);
  return client;
}

async function readMemory(url: string): Promise<number> {
  const client = await connect(url);
  const info = await client.info('memory');
  client.disconnect();
  return Number(/used_memory:(\d+)/.exec(info)![1]);
}

/** Adds entries of these lengths in turn up to this many bytes. @returns the hash of the first one */
async function fill(
  writer: RedisClient,
  lengths: readonly number[],
  bytes: number,
  ttlSeconds: number,
): Promise<string> {
  const meanBytes = lengths.reduce((a, b) => a + b, 0) / lengths.length + 300;
  const runs = Math.ceil(bytes / meanBytes / 250);
  const hashes: string[] = [];
  for (let run = 0; run < runs; run++) {
    const vectors = Array.from({ length: 250 }, (_, i) => ({
      hash: randomUUID().slice(0, 32),
      value: randomBytes(9 + lengths[i % lengths.length]!),
    }));
    hashes.push(vectors[0]!.hash);
    await runStoreVectors(writer, modelId, { ttlSeconds, maxBytes }, vectors);
  }
  return hashes[0]!;
}

function assertWithin(t: ExecutionContext, used: number, counted: number): void {
  t.log(`${((100 * used) / counted).toFixed(1)} % of the counted bytes`);
  // The script and Redis's buffers use a third of a megabyte, independent of the number of entries.
  t.true(used < 1.02 * counted + 500_000, `${used} bytes are used, but ${counted} are counted`);
  t.true(used > 0.85 * counted, `${used} bytes are used, but ${counted} are counted`);
}

for (const lengths of [[32], [256 * 4], [1536 * 4], [3072 * 4], [4, 200, 512 * 4, 768 * 4, 1024 * 4]]) {
  test(`under constant eviction Redis uses no more memory than we count, for vectors of ${lengths.join(', ')} bytes`, async (t) => {
    const server = await startTestRedis();
    t.teardown(() => server.stop());
    const before = await readMemory(server.url);
    const writer = await connect(server.url);
    t.teardown(() => writer.disconnect());
    await fill(writer, lengths, 2 * maxBytes, 1_000);
    const { bytes } = await countCachedVectors(writer, modelId);
    t.true(bytes > 0.99 * maxBytes && bytes <= maxBytes);
    // Disconnecting makes Redis free the client's buffers, which are not counted.
    writer.disconnect();
    assertWithin(t, (await readMemory(server.url)) - before, bytes);
  });
}

test('the cache stays within its limit even if Redis has not freed expired entries yet', async (t) => {
  const server = await startTestRedis();
  t.teardown(() => server.stop());
  const before = await readMemory(server.url);
  const writer = await connect(server.url);
  t.teardown(() => writer.disconnect());
  // Makes Redis free expired entries as rarely as possible.
  await writer.config('SET', 'hz', '1');
  const first = await fill(writer, [1024], 0.9 * maxBytes, 2);
  const key = redisKeys.cachedVector(modelId, first);
  await waitFor('the first entries to expire', async () => (await writer.exists(key)) === 0);
  await waitFor('the last entries to expire', async () => {
    const [last] = await writer.lrange(redisKeys.cachedVectorsOrder(modelId), -1, -1);
    return (await writer.exists(redisKeys.cachedVector(modelId, last!.split(' ')[0]!))) === 0;
  });
  await fill(writer, [1024], 2 * maxBytes, 1_000);
  const { bytes } = await countCachedVectors(writer, modelId);
  t.true(bytes > 0.99 * maxBytes && bytes <= maxBytes);
  writer.disconnect();
  assertWithin(t, (await readMemory(server.url)) - before, bytes);
});
