import { randomBytes, randomUUID } from 'node:crypto';
import test from 'ava';
import { createRedis, waitUntilReady, type RedisClient } from '../../../shared/redis/redis-client.ts';
import { createLogger } from '../../../shared/runtime/logger.ts';
import { countKeptVectors, runKeepVectors } from '../../../shared/vector-cache/keep-vectors-script.ts';
import { startTestRedis } from '../../support/redis.ts';

const log = createLogger('test', 'silent');
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

for (const lengths of [[32], [256 * 4], [1536 * 4], [3072 * 4], [4, 200, 512 * 4, 768 * 4, 1024 * 4]]) {
  test(`Redis takes no more than is counted for vectors of ${lengths.join(', ')} bytes, however often they change`, async (t) => {
    const server = await startTestRedis();
    t.teardown(() => server.stop());
    const before = await readMemory(server.url);
    const writer = await connect(server.url);
    const limits = { ttlSeconds: 1_000, maxBytes };
    let written = 0;
    while (written < 2 * maxBytes) {
      const vectors = Array.from({ length: 250 }, (_, i) => {
        const value = randomBytes(9 + lengths[i % lengths.length]!);
        written += value.length + 300;
        return { hash: randomUUID().slice(0, 32), value };
      });
      await runKeepVectors(writer, 'text-embedding-3-small', limits, vectors);
    }
    const { bytes } = await countKeptVectors(writer, 'text-embedding-3-small');
    t.true(bytes > 0.99 * maxBytes && bytes <= maxBytes);
    // Its buffers go with it.
    writer.disconnect();
    const taken = (await readMemory(server.url)) - before;
    t.log(`${((100 * taken) / bytes).toFixed(1)} % of what is counted`);
    // The script itself and Redis's own buffers take a third of a megabyte, however much is kept.
    t.true(taken < 1.02 * bytes + 500_000, `${taken} bytes are taken where ${bytes} are counted`);
    t.true(taken > 0.85 * bytes, `${taken} bytes are taken where ${bytes} are counted`);
  });
}
