import { LuaScript } from '../platform/redis/lua-script.ts';
import { callRedis, type RedisClient } from '../platform/redis/redis-client.ts';
import { redisKeys } from '../platform/redis/redis-keys.ts';
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

/** The sums of one hour. */
export interface HourlySums {
  readonly startMs: number;
  readonly models: ReadonlyMap<string, ModelSums>;
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
  /** Hours that have ended, by their buckets. Redis's clock has passed them, so they do not change any more. */
  #endedHours: ReadonlyMap<number, HourlySums> = new Map();

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
        ...toModelFields(sums.models).map(([field, amount]) => ({ isTotal: 0, field, amount })),
        ...toTotalFields(sums.totals).map(([field, amount]) => ({ isTotal: 1, field, amount })),
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
  async readHours(): Promise<PublicStats<readonly HourlySums[]>> {
    return await callRedis(async () => {
      const nowMs = await this.#readTimeMs();
      const [current, ...ended] = findBuckets(hourWindow, nowMs);
      const [{ value: fields, validForMs }, hours] = await Promise.all([
        this.#showAt(nowMs, redisKeys.shownHour, onlyCurrent(hourWindow), redisKeys.hourlyStats),
        Promise.all(ended.map((bucket) => this.#readEndedHour(bucket))),
      ]);
      this.#endedHours = new Map(ended.map((bucket, i) => [bucket, hours[i]!]));
      const shown = { startMs: startOf(current!), models: parseModelFields(fields) };
      return { value: [...hours.toReversed(), shown], validForMs };
    });
  }

  async #readEndedHour(bucket: number): Promise<HourlySums> {
    const known = this.#endedHours.get(bucket);
    if (known !== undefined) return known;
    const fields = await this.#redis.hgetall(redisKeys.hourlyStats(bucket));
    return { startMs: startOf(bucket), models: parseModelFields(Object.entries(fields).flat()) };
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

const onlyCurrent = (window: StatsWindow): StatsWindow => ({ ...window, previousBuckets: 0 });

/** Unix milliseconds. */
const startOf = (hour: number): number => hour * hourWindow.bucketSeconds * 1_000;
