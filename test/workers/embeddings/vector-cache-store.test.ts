import { randomBytes, randomUUID } from 'node:crypto';
import test, { type ExecutionContext } from 'ava';
import { createRedis, waitUntilReady } from '../../../shared/platform/redis/redis-client.ts';
import { redisKeys } from '../../../shared/platform/redis/redis-keys.ts';
import { createLogger, type Logger } from '../../../shared/platform/runtime/logger.ts';
import { CacheUseStore } from '../../../shared/work/cache-use-store.ts';
import { countCachedVectors } from '../../../shared/work/store-vectors-script.ts';
import { VectorCacheStore, type NamedVector } from '../../../workers/embeddings/vector-cache-store.ts';
import type { VectorSpace } from '../../../workers/embeddings/vector-space.ts';
import { startTestRedis } from '../../support/redis.ts';
import { useRedis } from '../../support/use-redis.ts';
import { waitFor } from '../../support/wait-for.ts';

const redis = useRedis(test);
const log = createLogger('test', 'silent');

interface SpaceOptions {
  readonly modelId?: string;
  readonly dimensions?: number;
  readonly ttlSeconds?: number;
  readonly maxBytes?: number;
}

/** Creates a vector space, for a new model unless one is given. */
function createSpace(options: SpaceOptions = {}): VectorSpace {
  const { modelId = randomUUID(), dimensions = 64, ttlSeconds = 1_000, maxBytes = 1_000_000 } = options;
  return { modelId, dimensions, identity: 'one', limits: { ttlSeconds, maxBytes } };
}

/** Arbitrary bytes, because cached vectors are returned bit for bit, not as numbers. */
function createVectors(space: VectorSpace, names: readonly string[]): NamedVector[] {
  return names.map((name, i) => {
    return { name, vector: randomBytes(space.dimensions * 4), tokens: i, counted: i % 2 === 1 };
  });
}

const createNames = (count: number): string[] => Array.from({ length: count }, () => randomUUID());

/** Waits longer for a reply than in production, so that a busy machine does not hide what is stored. */
const openStore = (client = redis()): VectorCacheStore => new VectorCacheStore(client, log, 60_000);

async function findNames(space: VectorSpace, names: readonly string[]): Promise<string[]> {
  const cached = await openStore().read(space, names);
  return names.filter((_, i) => cached[i] !== null);
}

/** Asserts that each entry has exactly one record, that there are no other records, and that the counts match. */
async function expectConsistent(t: ExecutionContext, { modelId }: VectorSpace): Promise<void> {
  const records = await redis().lrange(redisKeys.cachedVectorsOrder(modelId), 0, -1);
  const keys = await redis().keys(redisKeys.cachedVector(modelId, '*'));
  const fields = records.map((record) => record.split(' '));
  t.deepEqual(fields.map(([hash]) => redisKeys.cachedVector(modelId, hash!)).sort(), keys.sort());
  const { entries, bytes } = await countCachedVectors(redis(), modelId);
  t.is(entries, keys.length);
  t.is(
    bytes,
    fields.reduce((sum, [, , size]) => sum + Number(size), 0),
  );
}

test('a cached vector is found by its name and returned bit for bit, with its billed tokens', async (t) => {
  const space = createSpace({ dimensions: 1536 });
  const vectors = createVectors(space, ['a', 'b', 'c']);
  await openStore().write(space, vectors);
  const cached = await openStore().read(space, ['c', 'none', 'a', 'b', 'a']);
  const expect = (i: number): object => {
    const { vector, tokens, counted } = vectors[i]!;
    return { vector, tokens, counted };
  };
  t.deepEqual(cached, [expect(2), null, expect(0), expect(1), expect(0)]);
  t.deepEqual(await openStore().read(space, []), []);
  t.deepEqual(
    await findNames(createSpace({ dimensions: 1536 }), ['a']),
    [],
    'another model does not have it',
  );
});

test('thousands of inputs are looked up and cached with commands of limited size', async (t) => {
  const server = await startTestRedis();
  const ownClient = createRedis(server.url, 'commands', log);
  t.teardown(async () => {
    ownClient.disconnect();
    await server.stop();
  });
  await waitUntilReady(ownClient);
  const countCalls = async (command: string): Promise<number> => {
    const stats = await ownClient.info('commandstats');
    return Number(new RegExp(`cmdstat_${command}:calls=(\\d+)`).exec(stats)?.[1] ?? 0);
  };
  const space = createSpace({ dimensions: 1536, maxBytes: 100_000_000 });
  const store = openStore(ownClient);
  const vectors = createVectors(space, createNames(2048));
  await store.write(space, vectors);
  const cached = await store.read(
    space,
    vectors.map(({ name }) => name),
  );
  t.true(cached.every((one, i) => one !== null && one.vector.equals(vectors[i]!.vector)));
  t.is(await countCalls('mget'), 8);
  // This Redis did not know the scripts yet, so each was first sent by its hash and then in full.
  const writes = (await countCalls('evalsha')) + (await countCalls('eval'));
  t.true(writes >= 13 && writes <= 30, `${writes} scripts for 12.6 MB`);
});

test('the cache never exceeds its limit during many writes, and drops its oldest entries first', async (t) => {
  const space = createSpace({ dimensions: 256 });
  const store = openStore();
  const names = createNames(3_000);
  for (let at = 0; at < names.length; at += 50) {
    await store.write(space, createVectors(space, names.slice(at, at + 50)));
    const { bytes } = await countCachedVectors(redis(), space.modelId);
    t.true(bytes <= 1_000_000, `${bytes} bytes`);
  }
  const { entries, bytes } = await countCachedVectors(redis(), space.modelId);
  t.true(bytes > 990_000, 'the limit is used fully');
  t.deepEqual(await findNames(space, names), names.slice(-entries));
  await expectConsistent(t, space);
});

test('short vectors are evicted to make room for long ones, and vice versa', async (t) => {
  const short = createSpace({ dimensions: 8 });
  const long = createSpace({ modelId: short.modelId, dimensions: 3072 });
  for (let round = 0; round < 40; round++) {
    await openStore().write(short, createVectors(short, createNames(200)));
    await openStore().write(long, createVectors(long, createNames(10)));
    const { bytes } = await countCachedVectors(redis(), short.modelId);
    t.true(bytes <= 1_000_000, `${bytes} bytes`);
  }
  const last = createNames(5);
  await openStore().write(long, createVectors(long, last));
  t.deepEqual(await findNames(long, last), last);
  await expectConsistent(t, short);
});

test('a second write neither duplicates nor refreshes an existing entry', async (t) => {
  const space = createSpace({ dimensions: 2048 });
  const first = createVectors(space, ['first']);
  await openStore().write(space, first);
  await openStore().write(space, createVectors(space, createNames(90)));
  await openStore().write(space, createVectors(space, ['first']));
  t.is((await countCachedVectors(redis(), space.modelId)).entries, 91);
  t.true((await openStore().read(space, ['first']))[0]!.vector.equals(first[0]!.vector));
  await openStore().write(space, createVectors(space, createNames(60)));
  t.deepEqual(await findNames(space, ['first']), []);
  await expectConsistent(t, space);
});

test('after the limit is lowered, a few writes reduce the cache to it', async (t) => {
  const wide = createSpace({ dimensions: 256, maxBytes: 5_000_000 });
  await openStore().write(wide, createVectors(wide, createNames(3_000)));
  const narrow = createSpace({ modelId: wide.modelId, dimensions: 256 });
  for (let i = 0; i < 6; i++) await openStore().write(narrow, createVectors(narrow, createNames(1)));
  t.true((await countCachedVectors(redis(), wide.modelId)).bytes <= 1_000_000);
  await expectConsistent(t, narrow);
});

/** Asks Redis itself: a look-up that takes too long is a miss, too. */
async function waitUntilExpired({ modelId }: VectorSpace, names: readonly string[]): Promise<void> {
  const keys = names.map((name) => redisKeys.cachedVector(modelId, name));
  await waitFor('the entries to expire', async () => (await redis().exists(...keys)) === 0);
}

test('expired entries are no longer found or counted, and the list that records their order expires too', async (t) => {
  const space = createSpace({ ttlSeconds: 3 });
  const store = openStore();
  const names = createNames(1_500);
  await store.write(space, createVectors(space, names));
  const before = await countCachedVectors(redis(), space.modelId);
  t.is(before.entries, 1_500);
  t.true((await redis().pttl(redisKeys.cachedVector(space.modelId, names[0]!))) <= 3_000);
  await waitUntilExpired(space, names);
  t.like(await countCachedVectors(redis(), space.modelId), { entries: 0, bytes: 0 });
  t.deepEqual(await redis().keys(redisKeys.cachedVector(space.modelId, '*')), []);

  const [again] = createVectors(space, [names[0]!]);
  await store.write(space, [again!]);
  t.like(await countCachedVectors(redis(), space.modelId), { entries: 1 });
  const ttlMs = await redis().pttl(redisKeys.cachedVectorsOrder(space.modelId));
  t.true(ttlMs > 3_500_000 && ttlMs <= 3_603_000, 'the list outlives its entries, but not forever');
});

test('expired entries are dropped gradually by later writes', async (t) => {
  const space = createSpace({ ttlSeconds: 1, dimensions: 8, maxBytes: 10_000_000 });
  const names = createNames(2_000);
  await openStore().write(space, createVectors(space, names));
  await waitUntilExpired(space, names);
  const order = redisKeys.cachedVectorsOrder(space.modelId);
  const lengths: number[] = [];
  for (let i = 0; i < 5; i++) {
    const lasting = createSpace({ ...space, ttlSeconds: 1_000, maxBytes: 10_000_000 });
    await openStore().write(lasting, createVectors(space, createNames(1)));
    lengths.push(await redis().llen(order));
  }
  t.deepEqual(lengths, [1_501, 1_002, 503, 4, 5]);
});

test('if an expired entry is cached again, dropping its first record does not drop the new entry', async (t) => {
  const space = createSpace({ dimensions: 2048, ttlSeconds: 1_000 });
  const brief = { ...space, limits: { ...space.limits, ttlSeconds: 1 } };
  await openStore().write(space, createVectors(space, ['old']));
  await openStore().write(brief, createVectors(space, ['text']));
  await waitUntilExpired(space, ['text']);
  const others = createNames(50);
  await openStore().write(space, createVectors(space, others));
  await openStore().write(space, createVectors(space, ['text']));
  // The records of `old` and of the first `text` are dropped, but only the entry of `old`.
  let written = 0;
  while (
    (await redis().lindex(redisKeys.cachedVectorsOrder(space.modelId), 0))!.split(' ')[0] !== others[0]
  ) {
    t.true(++written < 100);
    await openStore().write(space, createVectors(space, createNames(1)));
  }
  t.deepEqual(await findNames(space, ['old', 'text', others[0]!]), ['text', others[0]!]);
  await expectConsistent(t, space);
});

test('cached bytes that are not a vector of the requested length are a miss, and are replaced by the new vector', async (t) => {
  const space = createSpace({ dimensions: 4 });
  const [vector] = createVectors(space, ['good']);
  await openStore().write(space, [vector!]);
  const intact = (await redis().getBuffer(redisKeys.cachedVector(space.modelId, 'good')))!;
  const corrupt = (change: (bytes: Buffer) => void): Buffer => {
    const bytes = Buffer.from(intact);
    change(bytes);
    return bytes;
  };
  const corrupted: Record<string, Buffer> = {
    empty: Buffer.alloc(0),
    short: intact.subarray(0, -1),
    long: Buffer.concat([intact, Buffer.alloc(4)]),
    header: intact.subarray(0, 9),
    otherLength: corrupt((bytes) => bytes.writeUInt32LE(3, 0)),
    flag: corrupt((bytes) => bytes.writeUInt8(7, 8)),
  };
  for (const [name, bytes] of Object.entries(corrupted)) {
    await redis().set(redisKeys.cachedVector(space.modelId, name), bytes);
    const store = openStore();
    t.deepEqual(await store.read(space, [name, 'good']), [
      null,
      { vector: vector!.vector, tokens: vector!.tokens, counted: vector!.counted },
    ]);
    const [remade] = createVectors(space, [name]);
    await store.write(space, [remade!]);
    t.true((await store.read(space, [name]))[0]?.vector.equals(remade!.vector), name);
  }
  await expectConsistent(t, space);
  t.deepEqual(await openStore().read(createSpace({ ...space, dimensions: 5 }), ['good']), [null]);
});

test('a Redis value of another type is a miss', async (t) => {
  const space = createSpace();
  await redis().rpush(redisKeys.cachedVector(space.modelId, 'list'), 'x');
  t.deepEqual(await openStore().read(space, ['list']), [null]);
});

test('a vector is not cached if its length differs from that of its space', async (t) => {
  const space = createSpace({ dimensions: 4 });
  await openStore().write(space, createVectors(createSpace({ dimensions: 3 }), ['odd']));
  await openStore().write(space, []);
  t.is((await countCachedVectors(redis(), space.modelId)).entries, 0);
});

test('entries and counts stay consistent while many workers cache the same and different vectors concurrently', async (t) => {
  const space = createSpace({ dimensions: 512 });
  const common = createNames(100);
  const clients = await Promise.all(
    Array.from({ length: 6 }, async () => {
      const { host, port } = redis().options as { host: string; port: number };
      const client = createRedis(`redis://${host}:${port}`, 'commands', log);
      await waitUntilReady(client);
      t.teardown(() => client.disconnect());
      return client;
    }),
  );
  await Promise.all(
    clients.map(async (client) => {
      const store = new VectorCacheStore(client, log);
      for (let round = 0; round < 10; round++) {
        const names = [...common.slice(round * 10, round * 10 + 10), ...createNames(30)];
        await store.write(space, createVectors(space, names));
        await store.read(space, names);
      }
    }),
  );
  const { bytes, entries } = await countCachedVectors(redis(), space.modelId);
  t.true(bytes <= 1_000_000 && bytes > 980_000 && entries > 300);
  await expectConsistent(t, space);
});

test('hits and misses are counted per input, with corrupted entries as misses', async (t) => {
  const space = createSpace();
  const use = new CacheUseStore(redis());
  t.deepEqual(await use.read(space.modelId), { hits: 0, misses: 0, entries: 0, bytes: 0 });
  await openStore().write(space, createVectors(space, ['a', 'b']));
  await redis().set(redisKeys.cachedVector(space.modelId, 'spoilt'), 'x');
  await openStore().read(space, ['a', 'b', 'none', 'spoilt', 'a']);
  await openStore().read(space, ['a']);
  const seen = await waitFor('the counts', async () => {
    const seen = await use.read(space.modelId);
    return seen.hits + seen.misses === 6 ? seen : null;
  });
  t.like(seen, { hits: 4, misses: 2, entries: 2 });
  t.true((await redis().ttl(redisKeys.cachedVectorsUse(space.modelId))) > 29 * 86_400);
});

test('without Redis, lookups find nothing and writes do nothing, and neither throws an error', async (t) => {
  const unreachable = createRedis('redis://127.0.0.1:1', 'commands', log);
  t.teardown(() => unreachable.disconnect());
  const store = new VectorCacheStore(unreachable, log);
  const space = createSpace();
  await t.notThrowsAsync(store.write(space, createVectors(space, ['a'])));
  t.deepEqual(await store.read(space, ['a', 'b']), [null, null]);
});

test('an error from Redis is a miss', async (t) => {
  const space = createSpace();
  const store = openStore();
  await redis().set(redisKeys.cachedVectorsOrder(space.modelId), 'no list');
  await t.notThrowsAsync(store.write(space, createVectors(space, ['a'])));
  t.deepEqual(await store.read(space, ['a']), [null]);
});

test('if Redis does not respond, a lookup is a miss after a second', async (t) => {
  const server = await startTestRedis();
  const [ownClient, other] = [server.url, server.url].map((url) => createRedis(url, 'commands', log));
  t.teardown(async () => {
    ownClient!.disconnect();
    other!.disconnect();
    await server.stop();
  });
  await Promise.all([waitUntilReady(ownClient!), waitUntilReady(other!)]);
  const space = createSpace();
  const reasons: string[] = [];
  const debug = ({ err }: { err: Error }): unknown => reasons.push(err.message);
  const store = new VectorCacheStore(ownClient!, { debug } as unknown as Logger);
  await store.write(space, createVectors(space, ['a']));
  await other!.client('PAUSE', 10_000, 'ALL');
  t.deepEqual(await store.read(space, ['a']), [null]);
  t.deepEqual(reasons, ['no reply within 1000 ms']);
});
