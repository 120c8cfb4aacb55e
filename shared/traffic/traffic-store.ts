import { callRedis, RedisScript, type RedisClient } from '../redis/redis-client.ts';
import { redisKeys } from '../redis/redis-keys.ts';
import { parseModelFields, parseTotalFields, toModelFields, toTotalFields } from './traffic-fields.ts';
import type { ModelSums, TotalSums, TrafficSums } from './traffic-sums.ts';
import { findBuckets, findStep, modelWindow, totalWindow, type TrafficWindow } from './traffic-windows.ts';

/**
 * Adds to the current bucket of each window. Redis's clock determines the current bucket, so the script completes the
 * bucket names. Their common tag keeps them on one node.
 */
const recordScript = new RedisScript(`
local now = tonumber(redis.call('TIME')[1])
local function add(prefix, seconds, ttl, from, to)
  local bucket = prefix .. math.floor(now / seconds)
  for i = from, to, 2 do redis.call('HINCRBY', bucket, ARGV[i], ARGV[i + 1]) end
  redis.call('EXPIRE', bucket, ttl)
end
local totals = 6 + tonumber(ARGV[5])
add(KEYS[1], ARGV[1], ARGV[2], 6, totals - 1)
add(KEYS[2], ARGV[3], ARGV[4], totals, #ARGV)
return 1
`);

/** The clock of the node that stores the stats, so that the clocks of the machines do not matter. */
const clockScript = new RedisScript(`
local time = redis.call('TIME')
return string.format('%.0f', tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000))
`);

/**
 * Returns the sums shown during a step. The first reader in a step sums the buckets, and all others get the same sums
 * until the next step. If each server computed its own sums, they would differ by the requests settled in between.
 */
const showScript = new RedisScript(`
local shown, step = KEYS[1], ARGV[1]
local last = redis.call('HGET', shown, 'step')
if last and tonumber(last) >= tonumber(step) then return redis.call('HGETALL', shown) end
local sums = {}
for i = 2, #KEYS do
  local bucket = redis.call('HGETALL', KEYS[i])
  for j = 1, #bucket, 2 do sums[bucket[j]] = (sums[bucket[j]] or 0) + tonumber(bucket[j + 1]) end
end
redis.call('DEL', shown)
redis.call('HSET', shown, 'step', step)
for field, sum in pairs(sums) do redis.call('HSET', shown, field, string.format('%.0f', sum)) end
redis.call('PEXPIRE', shown, ARGV[2])
return redis.call('HGETALL', shown)
`);

/** Stats and how long they remain valid. */
export interface PublicStats<T> {
  readonly value: T;
  readonly validForMs: number;
}

export interface TrafficStoreOptions {
  /** How long stats stay unchanged. Steps begin at multiples of this. */
  readonly stepMs?: number;
  /** Unix milliseconds; Redis's own clock by default. */
  readonly readTimeMs?: () => Promise<number>;
}

export const statsStepMs = 30_000;

/** The sums of recent traffic. All processes add to them, and every server shows the same sums. */
export class TrafficStore {
  readonly #redis: RedisClient;
  readonly #stepMs: number;
  readonly #readTimeMs: () => Promise<number>;

  constructor(redis: RedisClient, options: TrafficStoreOptions = {}) {
    this.#redis = redis;
    this.#stepMs = options.stepMs ?? statsStepMs;
    this.#readTimeMs =
      options.readTimeMs ?? (async () => Number(await clockScript.run(redis, [redisKeys.shownModels], [])));
  }

  /** Adds sums, in one round trip. After a failure, it is unknown whether Redis has added them. */
  async record(sums: TrafficSums): Promise<void> {
    const models = toModelFields(sums.models).flat();
    await recordScript.run(
      this.#redis,
      [redisKeys.modelTraffic(''), redisKeys.totalTraffic('')],
      [
        modelWindow.bucketSeconds,
        modelWindow.retentionSeconds,
        totalWindow.bucketSeconds,
        totalWindow.retentionSeconds,
        models.length,
        ...models,
        ...toTotalFields(sums.totals).flat(),
      ],
    );
  }

  /** @throws AppError `service_unavailable` */
  async readModels(): Promise<PublicStats<ReadonlyMap<string, ModelSums>>> {
    const { value, validForMs } = await this.#show(
      redisKeys.shownModels,
      modelWindow,
      redisKeys.modelTraffic,
    );
    return { value: parseModelFields(value), validForMs };
  }

  /** @throws AppError `service_unavailable` */
  async readTotals(): Promise<PublicStats<TotalSums>> {
    const { value, validForMs } = await this.#show(
      redisKeys.shownTotals,
      totalWindow,
      redisKeys.totalTraffic,
    );
    return { value: parseTotalFields(value), validForMs };
  }

  async #show(
    shownKey: string,
    window: TrafficWindow,
    bucketKey: (bucket: number) => string,
  ): Promise<PublicStats<string[]>> {
    return await callRedis(async () => {
      const nowMs = await this.#readTimeMs();
      const { startMs, leftMs } = findStep(this.#stepMs, nowMs);
      const keys = [shownKey, ...findBuckets(window, nowMs).map(bucketKey)];
      // The shown sums expire. Otherwise, if the clock of a new master is behind, they would be shown until it caught up.
      const value = (await showScript.run(this.#redis, keys, [startMs, 2 * this.#stepMs])) as string[];
      return { value, validForMs: leftMs };
    });
  }
}
