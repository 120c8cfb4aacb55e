import type { CatalogEmbeddingCache } from '../catalog/catalog-schema.ts';
import { RedisScript, type RedisClient } from '../redis/redis-client.ts';
import { redisKeys } from '../redis/redis-keys.ts';
import { measureEntry } from './entry-size.ts';

/**
 * Stores vectors and evicts the oldest if there is no space. The order is a list of records, oldest first: hash, expiry
 * time (ms), size, and the total size of all entries ever stored, including this one. The current total is computed
 * from the first and the last record, so no separate counter can drift from the list. The size of an expired entry
 * counts until its record is dropped, and records are only dropped from the front, so the total is never too low. A key
 * stored again after it expired belongs to its later record, which its expiry time identifies. One execution evicts a
 * limited number of entries and skips vectors for which that did not free enough space.
 */
const storeScript = new RedisScript(`
local order, prefix = KEYS[1], ARGV[1]
local maxBytes, ttlMs, graceMs, maxEvictions = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local function read(record)
  local hash, expiry, size, sum = string.match(record, '^(%S+) (%d+) (%d+) (%d+)$')
  return hash, tonumber(expiry), tonumber(size), tonumber(sum)
end
local first, last = redis.call('LINDEX', order, 0), redis.call('LINDEX', order, -1)
local totalBytes, sum, evicted = 0, 0, 0
if first then
  local _, _, size, firstSum = read(first)
  sum = select(4, read(last))
  totalBytes = sum - firstSum + size
end
local function evictOldest()
  local hash, expiry, size = read(redis.call('LPOP', order))
  if redis.call('PEXPIRETIME', prefix .. hash) == expiry then redis.call('UNLINK', prefix .. hash) end
  totalBytes = totalBytes - size
  evicted = evicted + 1
end
while first and evicted < maxEvictions and select(2, read(first)) <= now do
  evictOldest()
  first = redis.call('LINDEX', order, 0)
end
local expiry = string.format('%.0f', now + ttlMs)
for i = 2, #KEYS do
  local hash, value, size = ARGV[3 * i], ARGV[3 * i + 1], tonumber(ARGV[3 * i + 2])
  if size <= maxBytes and redis.call('EXISTS', KEYS[i]) == 0 then
    while totalBytes + size > maxBytes and evicted < maxEvictions do evictOldest() end
    if totalBytes + size <= maxBytes then
      totalBytes, sum = totalBytes + size, sum + size
      redis.call('SET', KEYS[i], value, 'PXAT', expiry)
      redis.call('RPUSH', order, string.format('%s %s %.0f %.0f', hash, expiry, size, sum))
    end
  end
end
local untilMs = now + ttlMs + graceMs
if #KEYS > 1 and redis.call('PEXPIRETIME', order) < untilMs then
  redis.call('PEXPIREAT', order, string.format('%.0f', untilMs))
end
return { redis.call('LLEN', order), totalBytes, evicted }
`);

/**
 * How long the list outlives its entries. Redis frees expired entries with a delay, and their size counts until then.
 */
const graceMs = 3_600_000;

/**
 * Maximum evictions per execution, such as when many short vectors make space for a few long ones. They block Redis for
 * a millisecond or two.
 */
const maxEvictions = 500;

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
  const keys = vectors.map(({ hash }) => redisKeys.cachedVector(modelId, hash));
  const entries = vectors.flatMap(({ hash, value }, i) => [
    hash,
    value,
    measureEntry(keys[i]!.length, value.length),
  ]);
  return await run(redis, modelId, keys, [maxBytes, ttlSeconds * 1_000, graceMs, maxEvictions, ...entries]);
}

/** Counts the stored vectors, without expired ones. */
export async function countCachedVectors(redis: RedisClient, modelId: string): Promise<CachedVectors> {
  for (;;) {
    const counted = await run(redis, modelId, [], [0, 0, 0, maxEvictions]);
    if (counted.evicted < maxEvictions) return counted;
  }
}

async function run(
  redis: RedisClient,
  modelId: string,
  entryKeys: readonly string[],
  args: readonly (string | number | Buffer)[],
): Promise<CachedVectors> {
  const keys = [redisKeys.cachedVectorsOrder(modelId), ...entryKeys];
  const prefix = redisKeys.cachedVector(modelId, '');
  const [entries, bytes, evicted] = (await storeScript.run(redis, keys, [prefix, ...args])) as [
    number,
    number,
    number,
  ];
  return { entries, bytes, evicted };
}
