import { isRedisUnavailable, type RedisClient } from '../../shared/platform/redis/redis-client.ts';
import { redisKeys } from '../../shared/platform/redis/redis-keys.ts';
import { within } from '../../shared/platform/runtime/within.ts';
import type { Logger } from '../../shared/platform/runtime/logger.ts';
import { CacheUseStore } from '../../shared/work/cache-use-store.ts';
import { runStoreVectors, type VectorToCache } from '../../shared/work/store-vectors-script.ts';
import { decodeEntry, encodeEntry, type StoredVector } from './vector-entry.ts';
import type { VectorSpace } from './vector-space.ts';

/** Larger commands would noticeably block Redis for other clients. */
const namesPerCommand = 256;
const bytesPerCommand = 1_000_000;

/** A slower lookup would take as long as calling the vendor. */
const defaultLookupTimeoutMs = 1_000;

/** Nothing awaits the writes, so this limits the memory they use when Redis is slow. */
const maxBytesInFlight = 64_000_000;

export interface NamedVector extends StoredVector {
  readonly name: string;
}

/**
 * Caches the vectors that models returned, by their names in a space, for the time set in the catalog. A lost
 * vector only costs another call to the vendor, so an unavailable, slow or failing Redis is not an error here:
 * reads find nothing, and writes do nothing.
 */
export class VectorCacheStore {
  readonly #redis: RedisClient;
  readonly #use: CacheUseStore;
  readonly #log: Logger;
  readonly #lookupTimeoutMs: number;
  #bytesInFlight = 0;

  /** @param lookupTimeoutMs after which a read finds nothing */
  constructor(redis: RedisClient, log: Logger, lookupTimeoutMs = defaultLookupTimeoutMs) {
    this.#redis = redis;
    this.#use = new CacheUseStore(redis);
    this.#log = log;
    this.#lookupTimeoutMs = lookupTimeoutMs;
  }

  /** Takes one round trip. Returns the vector for each name, in order; null for a miss. */
  async read(space: VectorSpace, names: readonly string[]): Promise<(StoredVector | null)[]> {
    const { modelId, dimensions } = space;
    const keys = names.map((name) => redisKeys.cachedVector(modelId, name));
    try {
      const cachedBytes = await within(this.#lookupTimeoutMs, this.#readKeys(keys), () =>
        throwTimeout(this.#lookupTimeoutMs),
      );
      const foundVectors = cachedBytes.map((bytes) =>
        bytes === null ? null : decodeEntry(bytes, dimensions),
      );
      this.#drop(keys.filter((_, i) => cachedBytes[i] !== null && foundVectors[i] === null));
      this.#count(modelId, foundVectors);
      return foundVectors;
    } catch (error) {
      this.#logFailure(error, 'looking up cached vectors failed');
      return names.map(() => null);
    }
  }

  /** Takes one round trip. Skips vectors whose length differs from the space's. */
  async write(space: VectorSpace, vectors: readonly NamedVector[]): Promise<void> {
    const fittingVectors = vectors.filter(({ vector }) => vector.length === space.dimensions * 4);
    const bytes = fittingVectors.reduce((sum, { vector }) => sum + vector.length, 0);
    if (bytes === 0 || this.#bytesInFlight + bytes > maxBytesInFlight) return;
    this.#bytesInFlight += bytes;
    try {
      const entries = fittingVectors.map((one) => ({ hash: one.name, value: encodeEntry(one) }));
      const parts = cutByBytes(entries);
      await Promise.all(parts.map((part) => runStoreVectors(this.#redis, space.modelId, space.limits, part)));
    } catch (error) {
      this.#logFailure(error, 'caching vectors failed');
    } finally {
      this.#bytesInFlight -= bytes;
    }
  }

  async #readKeys(keys: readonly string[]): Promise<(Buffer | null)[]> {
    const parts: Promise<(Buffer | null)[]>[] = [];
    for (let at = 0; at < keys.length; at += namesPerCommand) {
      parts.push(this.#redis.mgetBuffer(keys.slice(at, at + namesPerCommand)));
    }
    return (await Promise.all(parts)).flat();
  }

  /** Deletes malformed entries, which would prevent valid vectors from being written in their place. */
  #drop(keys: readonly string[]): void {
    if (keys.length === 0) return;
    this.#log.warn({ entries: keys.length }, 'deleting damaged vectors from the cache');
    this.#redis.unlink([...keys]).catch((error: unknown) => {
      this.#logFailure(error, 'deleting damaged vectors failed');
    });
  }

  #count(modelId: string, foundVectors: readonly (StoredVector | null)[]): void {
    const hitCount = foundVectors.filter((one) => one !== null).length;
    this.#use.count(modelId, hitCount, foundVectors.length - hitCount).catch((error: unknown) => {
      this.#logFailure(error, 'counting a lookup of cached vectors failed');
    });
  }

  #logFailure(error: unknown, message: string): void {
    const isUnexpected = !(error instanceof LookupTimeout) && !isRedisUnavailable(error);
    this.#log[isUnexpected ? 'warn' : 'debug']({ err: error }, message);
  }
}

class LookupTimeout extends Error {
  override readonly name = 'LookupTimeout';
}

function throwTimeout(timeoutMs: number): never {
  throw new LookupTimeout(`no reply within ${timeoutMs} ms`);
}

function cutByBytes(entries: readonly VectorToCache[]): VectorToCache[][] {
  const parts: VectorToCache[][] = [];
  let bytes = Infinity;
  for (const entry of entries) {
    bytes += entry.value.length;
    if (bytes > bytesPerCommand || parts.at(-1)!.length >= namesPerCommand) {
      parts.push([]);
      bytes = entry.value.length;
    }
    parts.at(-1)!.push(entry);
  }
  return parts;
}
