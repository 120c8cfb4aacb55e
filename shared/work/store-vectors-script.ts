// decision 0022
import type { CatalogEmbeddingCache } from '../catalog/catalog-schema.ts';
import { LuaScript } from '../platform/redis/lua-script.ts';
import type { RedisClient } from '../platform/redis/redis-client.ts';
import { redisKeys } from '../platform/redis/redis-keys.ts';

const script = new LuaScript(
  new URL('./store-vectors.lua', import.meta.url),
  ['order', 'prefix', 'maxBytes', 'ttlMs', 'graceMs', 'maxEvictions'],
  { itemNames: ['key', 'hash', 'value', 'size'] },
);

/**
 * How long the list outlives its entries. Redis frees expired entries with a delay, and their size counts until then.
 */
const graceMs = 3_600_000;

/**
 * Maximum evictions per execution, such as when many short vectors make space for a few long ones. They block Redis for
 * a millisecond or two.
 */
const maxEvictions = 500;

/** The value's object, its entries in the tables of keys and of expiry times, and its share of both tables. */
const tablesBytes = 16 + 24 + 24 + 32;
/** The entry's record in the list that defines the eviction order. */
const recordBytes = 72;
/** Overhead of Redis for each name and each value. */
const nameOverheadBytes = 4;
const valueOverheadBytes = 10;

export interface VectorToCache {
  readonly hash: string;
  readonly value: Buffer;
}

export interface CachedVectors {
  readonly entries: number;
  readonly bytes: number;
  /** Number of entries evicted by this call. */
  readonly evicted: number;
}

/** Stores vectors in one round trip. Existing entries and their expiry stay unchanged. */
export async function runStoreVectors(
  redis: RedisClient,
  modelId: string,
  { ttlSeconds, maxBytes }: CatalogEmbeddingCache,
  vectors: readonly VectorToCache[],
): Promise<CachedVectors> {
  const limits = { maxBytes, ttlMs: ttlSeconds * 1_000, graceMs };
  return await run(redis, modelId, limits, vectors);
}

/** Counts the stored vectors, without expired ones. */
export async function countCachedVectors(redis: RedisClient, modelId: string): Promise<CachedVectors> {
  for (;;) {
    const counted = await run(redis, modelId, { maxBytes: 0, ttlMs: 0, graceMs: 0 }, []);
    if (counted.evicted < maxEvictions) return counted;
  }
}

async function run(
  redis: RedisClient,
  modelId: string,
  limits: { readonly maxBytes: number; readonly ttlMs: number; readonly graceMs: number },
  vectors: readonly VectorToCache[],
): Promise<CachedVectors> {
  const order = redisKeys.cachedVectorsOrder(modelId);
  const prefix = redisKeys.cachedVector(modelId, '');
  const items = vectors.map(({ hash, value }) => {
    const key = redisKeys.cachedVector(modelId, hash);
    return { key, hash, value, size: measureEntry(key.length, value.length) };
  });
  const [entries, bytes, evicted] = (await script.run(
    redis,
    { order, prefix, ...limits, maxEvictions },
    items,
  )) as [entries: number, bytes: number, evicted: number];
  return { entries, bytes, evicted };
}

/**
 * Returns how much of Redis's memory one string of these lengths takes, in bytes. With short vectors, a limit on the
 * values alone would be exceeded by half.
 */
function measureEntry(nameLength: number, valueLength: number): number {
  return (
    tablesBytes +
    recordBytes +
    roundToAllocation(nameLength + nameOverheadBytes) +
    roundToAllocation(valueLength + valueOverheadBytes)
  );
}

/** Redis's allocator has four size classes between consecutive powers of two. */
function roundToAllocation(bytes: number): number {
  const step = Math.max(8, 2 ** (Math.ceil(Math.log2(bytes)) - 3));
  return Math.ceil(bytes / step) * step;
}
