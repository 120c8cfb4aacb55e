import type { CatalogEmbeddingCache } from '../catalog/catalog-schema.ts';
import { RedisScript, type RedisClient } from '../redis/redis-client.ts';
import { redisKeys } from '../redis/redis-keys.ts';
import { measureEntry } from './entry-size.ts';

/**
 * Keeps vectors, and drops the oldest where there is no room. The order is a list of records, oldest first: hash, when
 * the entry expires (ms), what it takes, and the sum of what all entries took that were ever kept, itself included. What
 * is held now follows from the first and the last record, so there is no count beside the list that could come apart from
 * it. An entry that expired counts until its record is dropped, and records are dropped from the front alone: what is
 * counted is never less than what is there. A key that was kept anew after it expired belongs to its later record; the
 * moment in which it expires tells. A run drops a bounded number, and leaves out what it has made no room for by then.
 */
const keepScript = new RedisScript(`
local order, prefix = KEYS[1], ARGV[1]
local maxBytes, ttlMs, graceMs, mostDrops = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local function read(record)
  local hash, expiry, size, sum = string.match(record, '^(%S+) (%d+) (%d+) (%d+)$')
  return hash, tonumber(expiry), tonumber(size), tonumber(sum)
end
local first, last = redis.call('LINDEX', order, 0), redis.call('LINDEX', order, -1)
local held, sum, dropped = 0, 0, 0
if first then
  local _, _, size, firstSum = read(first)
  sum = select(4, read(last))
  held = sum - firstSum + size
end
local function dropFirst()
  local hash, expiry, size = read(redis.call('LPOP', order))
  if redis.call('PEXPIRETIME', prefix .. hash) == expiry then redis.call('UNLINK', prefix .. hash) end
  held = held - size
  dropped = dropped + 1
end
while first and dropped < mostDrops and select(2, read(first)) <= now do
  dropFirst()
  first = redis.call('LINDEX', order, 0)
end
local expiry = string.format('%.0f', now + ttlMs)
for i = 2, #KEYS do
  local hash, value, size = ARGV[3 * i], ARGV[3 * i + 1], tonumber(ARGV[3 * i + 2])
  if size <= maxBytes and redis.call('EXISTS', KEYS[i]) == 0 then
    while held + size > maxBytes and dropped < mostDrops do dropFirst() end
    if held + size <= maxBytes then
      held, sum = held + size, sum + size
      redis.call('SET', KEYS[i], value, 'PXAT', expiry)
      redis.call('RPUSH', order, string.format('%s %s %.0f %.0f', hash, expiry, size, sum))
    end
  end
end
local untilMs = now + ttlMs + graceMs
if #KEYS > 1 and redis.call('PEXPIRETIME', order) < untilMs then
  redis.call('PEXPIREAT', order, string.format('%.0f', untilMs))
end
return { redis.call('LLEN', order), held, dropped }
`);

/** Redis frees what expired in its own time, and until then it must count. */
const graceMs = 3_600_000;

/** By one run: a millisecond or two of Redis's time, in which many short vectors make room for a few long ones. */
const mostDrops = 500;

export interface VectorToKeep {
  readonly hash: string;
  readonly value: Buffer;
}

export interface KeptVectors {
  readonly entries: number;
  readonly bytes: number;
  /** By this run. */
  readonly dropped: number;
}

/** One trip. Entries that are there stay as they are, and expire when they would. */
export async function runKeepVectors(
  redis: RedisClient,
  modelId: string,
  { ttlSeconds, maxBytes }: CatalogEmbeddingCache,
  vectors: readonly VectorToKeep[],
): Promise<KeptVectors> {
  const keys = vectors.map(({ hash }) => redisKeys.keptVector(modelId, hash));
  const entries = vectors.flatMap(({ hash, value }, i) => [
    hash,
    value,
    measureEntry(keys[i]!.length, value.length),
  ]);
  return await run(redis, modelId, keys, [maxBytes, ttlSeconds * 1_000, graceMs, mostDrops, ...entries]);
}

/** What is kept, without what has expired. */
export async function countKeptVectors(redis: RedisClient, modelId: string): Promise<KeptVectors> {
  for (;;) {
    const kept = await run(redis, modelId, [], [0, 0, 0, mostDrops]);
    if (kept.dropped < mostDrops) return kept;
  }
}

async function run(
  redis: RedisClient,
  modelId: string,
  entryKeys: readonly string[],
  args: readonly (string | number | Buffer)[],
): Promise<KeptVectors> {
  const keys = [redisKeys.keptVectorsOrder(modelId), ...entryKeys];
  const prefix = redisKeys.keptVector(modelId, '');
  const [entries, bytes, dropped] = (await keepScript.run(redis, keys, [prefix, ...args])) as [
    number,
    number,
    number,
  ];
  return { entries, bytes, dropped };
}
