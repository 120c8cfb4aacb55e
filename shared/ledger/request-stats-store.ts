import { LuaScript } from '../platform/redis/lua-script.ts';
import { callRedis, type RedisClient } from '../platform/redis/redis-client.ts';
import { redisKeys } from '../platform/redis/redis-keys.ts';
import { EndedBuckets } from './ended-buckets.ts';
import { readStatsClock, recordSums, type Buckets } from './record-sums-script.ts';
import { parseModelFields, parseTotalFields, toModelFields, toTotalFields } from './request-stats-fields.ts';
import type { ModelSums, TotalSums, RequestSums } from './request-sums.ts';
import {
  findBuckets,
  findStep,
  hourWindow,
  modelWindow,
  totalWindow,
  type StatsWindow,
} from './request-stats-windows.ts';

const showScript = new LuaScript(
  new URL('./show-request-stats.lua', import.meta.url),
  ['shown', 'step', 'lifetimeMs'],
  { itemNames: ['bucket'] },
);

/** Stats and how long they remain valid. */
export interface PublicStats<T> {
  readonly value: T;
  readonly validForMs: number;
}

/** The sums of a part of a window, such as an hour. */
export interface BucketSums {
  readonly startMs: number;
  readonly models: ReadonlyMap<string, ModelSums>;
}

const minutes: Buckets = { window: modelWindow, key: redisKeys.modelStats };
const hours: Buckets = { window: hourWindow, key: redisKeys.hourlyStats };

export interface RequestStatsStoreOptions {
  /** How long stats stay unchanged. Steps begin at multiples of this. */
  readonly stepMs?: number;
  /** Unix milliseconds; Redis's own clock by default. */
  readonly readTimeMs?: () => Promise<number>;
}

export const statsStepMs = 30_000;

/** The sums over recent requests. All processes add to them, and every server shows the same sums. */
export class RequestStatsStore {
  readonly #redis: RedisClient;
  readonly #stepMs: number;
  readonly #readTimeMs: () => Promise<number>;
  readonly #endedHours: EndedBuckets<BucketSums>;

  constructor(redis: RedisClient, options: RequestStatsStoreOptions = {}) {
    this.#redis = redis;
    this.#stepMs = options.stepMs ?? statsStepMs;
    this.#readTimeMs = options.readTimeMs ?? (() => readStatsClock(redis));
    this.#endedHours = new EndedBuckets(async (bucket) =>
      toBucketSums(bucket, Object.entries(await redis.hgetall(redisKeys.hourlyStats(bucket))).flat()),
    );
  }

  /** Adds sums. After a failure, it is unknown whether Redis has added them. */
  async record(sums: RequestSums): Promise<void> {
    await recordSums(this.#redis, minutes, hours, toModelFields(sums.models), toTotalFields(sums.totals));
  }

  /** @throws AppError `service_unavailable` */
  async readModels(): Promise<PublicStats<ReadonlyMap<string, ModelSums>>> {
    const { value, validForMs } = await this.#show(redisKeys.shownModels, modelWindow, redisKeys.modelStats);
    return { value: parseModelFields(value), validForMs };
  }

  /**
   * Reads the last 24 hours, oldest first; the current one ends with the current step.
   * @throws AppError `service_unavailable`
   */
  async readHours(): Promise<PublicStats<readonly BucketSums[]>> {
    return await callRedis(async () => {
      const nowMs = await this.#readTimeMs();
      const [current, ...ended] = findBuckets(hourWindow, nowMs);
      const { value: fields, validForMs } = await this.#showAt(
        nowMs,
        redisKeys.shownHour,
        { ...hourWindow, previousBuckets: 0 },
        redisKeys.hourlyStats,
      );
      const sums = await this.#endedHours.get(ended);
      return { value: [...sums.toReversed(), toBucketSums(current!, fields)], validForMs };
    });
  }

  /** @throws AppError `service_unavailable` */
  async readTotals(): Promise<PublicStats<TotalSums>> {
    const { value, validForMs } = await this.#show(redisKeys.shownTotals, totalWindow, redisKeys.totalStats);
    return { value: parseTotalFields(value), validForMs };
  }

  async #show(
    shownKey: string,
    window: StatsWindow,
    bucketKey: (bucket: number) => string,
  ): Promise<PublicStats<string[]>> {
    return await callRedis(async () => this.#showAt(await this.#readTimeMs(), shownKey, window, bucketKey));
  }

  async #showAt(
    nowMs: number,
    shownKey: string,
    window: StatsWindow,
    bucketKey: (bucket: number) => string,
  ): Promise<PublicStats<string[]>> {
    const { startMs, leftMs } = findStep(this.#stepMs, nowMs);
    const buckets = findBuckets(window, nowMs).map((bucket) => ({ bucket: bucketKey(bucket) }));
    // The shown sums expire. Otherwise, if the clock of a new master is behind, they would be shown until it caught up.
    const values = { shown: shownKey, step: startMs, lifetimeMs: 2 * this.#stepMs };
    const value = (await showScript.run(this.#redis, values, buckets)) as string[];
    return { value, validForMs: leftMs };
  }
}

const toBucketSums = (hour: number, fields: readonly string[]): BucketSums => ({
  startMs: hour * hourWindow.bucketSeconds * 1_000,
  models: parseModelFields(fields),
});
