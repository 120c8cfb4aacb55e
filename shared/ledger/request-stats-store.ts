import { LuaScript } from '../platform/redis/lua-script.ts';
import { callRedis, type RedisClient } from '../platform/redis/redis-client.ts';
import { redisKeys } from '../platform/redis/redis-keys.ts';
import { parseModelFields, parseTotalFields, toModelFields, toTotalFields } from './request-stats-fields.ts';
import type { ModelSums, TotalSums, RequestSums } from './request-sums.ts';
import {
  findBuckets,
  findStep,
  modelWindow,
  totalWindow,
  type StatsWindow,
} from './request-stats-windows.ts';

const recordScript = new LuaScript(
  new URL('./record-request-stats.lua', import.meta.url),
  ['modelsPrefix', 'totalsPrefix', 'modelsSeconds', 'modelsLifetime', 'totalsSeconds', 'totalsLifetime'],
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
        totalsPrefix: redisKeys.totalStats(''),
        modelsSeconds: modelWindow.bucketSeconds,
        modelsLifetime: modelWindow.retentionSeconds,
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
    return await callRedis(async () => {
      const nowMs = await this.#readTimeMs();
      const { startMs, leftMs } = findStep(this.#stepMs, nowMs);
      const buckets = findBuckets(window, nowMs).map((bucket) => ({ bucket: bucketKey(bucket) }));
      // The shown sums expire. Otherwise, if the clock of a new master is behind, they would be shown until it caught up.
      const values = { shown: shownKey, step: startMs, lifetimeMs: 2 * this.#stepMs };
      const value = (await showScript.run(this.#redis, values, buckets)) as string[];
      return { value, validForMs: leftMs };
    });
  }
}
