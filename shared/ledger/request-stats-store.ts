import { LuaScript } from '../platform/redis/lua-script.ts';
import { callRedis, type RedisClient } from '../platform/redis/redis-client.ts';
import { redisKeys } from '../platform/redis/redis-keys.ts';
import {
  parseModelFields,
  parseTotalFields,
  parseTrafficFields,
  toModelFields,
  toTotalFields,
  toTrafficFields,
} from './request-stats-fields.ts';
import type { TrafficSums } from './traffic-sums.ts';
import type { ModelSums, TotalSums, RequestSums } from './request-sums.ts';
import {
  findBuckets,
  findStep,
  hourWindow,
  lastHourWindow,
  modelWindow,
  totalWindow,
  type StatsWindow,
} from './request-stats-windows.ts';

const recordScript = new LuaScript(
  new URL('./record-request-stats.lua', import.meta.url),
  [
    'modelsPrefix',
    'hoursPrefix',
    'totalsPrefix',
    'modelsSeconds',
    'modelsLifetime',
    'hoursSeconds',
    'hoursLifetime',
    'totalsSeconds',
    'totalsLifetime',
  ],
  { itemNames: ['isTotal', 'field', 'amount'] },
);
const clockScript = new LuaScript(new URL('./read-clock.lua', import.meta.url), ['shown']);
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
  /** What operators see; without requests of earlier releases. */
  readonly traffic: ReadonlyMap<string, TrafficSums>;
}

/** A window whose buckets are read one by one. */
interface BucketList {
  readonly window: StatsWindow;
  readonly bucketKey: (bucket: number) => string;
  readonly shownKey: string;
  /** Buckets that have ended, by number. Redis's clock has passed them, so they do not change any more. */
  ended: ReadonlyMap<number, BucketSums>;
}

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
  readonly #hours: BucketList = {
    window: hourWindow,
    bucketKey: redisKeys.hourlyStats,
    shownKey: redisKeys.shownHour,
    ended: new Map(),
  };
  readonly #lastHour: BucketList = {
    window: lastHourWindow,
    bucketKey: redisKeys.modelStats,
    shownKey: redisKeys.shownMinutes,
    ended: new Map(),
  };

  constructor(redis: RedisClient, options: RequestStatsStoreOptions = {}) {
    this.#redis = redis;
    this.#stepMs = options.stepMs ?? statsStepMs;
    this.#readTimeMs =
      options.readTimeMs ??
      (async () => Number(await clockScript.run(redis, { shown: redisKeys.shownModels })));
  }

  /** Adds sums, in one round trip. After a failure, it is unknown whether Redis has added them. */
  async record(sums: RequestSums): Promise<void> {
    await recordScript.run(
      this.#redis,
      {
        modelsPrefix: redisKeys.modelStats(''),
        hoursPrefix: redisKeys.hourlyStats(''),
        totalsPrefix: redisKeys.totalStats(''),
        modelsSeconds: modelWindow.bucketSeconds,
        modelsLifetime: modelWindow.retentionSeconds,
        hoursSeconds: hourWindow.bucketSeconds,
        hoursLifetime: hourWindow.retentionSeconds,
        totalsSeconds: totalWindow.bucketSeconds,
        totalsLifetime: totalWindow.retentionSeconds,
      },
      [
        ...[...toModelFields(sums.models), ...toTrafficFields(sums.traffic)].map(([field, amount]) => ({
          isTotal: 0,
          field,
          amount: String(amount),
        })),
        ...toTotalFields(sums.totals).map(([field, amount]) => ({
          isTotal: 1,
          field,
          amount: String(amount),
        })),
      ],
    );
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
    return await this.#readBuckets(this.#hours);
  }

  /**
   * Reads the last 60 minutes, in parts of five, oldest first; the current one ends with the current step.
   * @throws AppError `service_unavailable`
   */
  async readLastHour(): Promise<PublicStats<readonly BucketSums[]>> {
    return await this.#readBuckets(this.#lastHour);
  }

  async #readBuckets(list: BucketList): Promise<PublicStats<readonly BucketSums[]>> {
    const { window, bucketKey, shownKey } = list;
    return await callRedis(async () => {
      const nowMs = await this.#readTimeMs();
      const [current, ...ended] = findBuckets(window, nowMs);
      const [{ value: fields, validForMs }, sums] = await Promise.all([
        this.#showAt(nowMs, shownKey, { ...window, previousBuckets: 0 }, bucketKey),
        Promise.all(ended.map((bucket) => this.#readEnded(list, bucket))),
      ]);
      list.ended = new Map(ended.map((bucket, i) => [bucket, sums[i]!]));
      return { value: [...sums.toReversed(), toBucketSums(window, current!, fields)], validForMs };
    });
  }

  async #readEnded({ window, bucketKey, ended }: BucketList, bucket: number): Promise<BucketSums> {
    const known = ended.get(bucket);
    if (known !== undefined) return known;
    const fields = await this.#redis.hgetall(bucketKey(bucket));
    return toBucketSums(window, bucket, Object.entries(fields).flat());
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

const toBucketSums = (
  { bucketSeconds }: StatsWindow,
  bucket: number,
  fields: readonly string[],
): BucketSums => ({
  startMs: bucket * bucketSeconds * 1_000,
  models: parseModelFields(fields),
  traffic: parseTrafficFields(fields),
});
