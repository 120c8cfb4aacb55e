import { callRedis, type RedisClient } from '../platform/redis/redis-client.ts';
import { redisKeys } from '../platform/redis/redis-keys.ts';
import { EndedBuckets } from './ended-buckets.ts';
import { readStatsClock, recordSums, type Buckets } from './record-sums-script.ts';
import { parseTrafficFields, toTrafficFields } from './request-stats-fields.ts';
import { findBuckets, hourWindow, lastHourWindow } from './request-stats-windows.ts';
import { requestCounts, type ModelTraffic, type TrafficSums } from './traffic-sums.ts';

/** The sums of a part of a period, such as an hour. */
export interface TrafficBucket {
  readonly startMs: number;
  readonly models: ReadonlyMap<string, TrafficSums>;
}

const minutes: Buckets = { window: lastHourWindow, key: redisKeys.operatorMinutes };
const hours: Buckets = { window: hourWindow, key: redisKeys.operatorHours };

/**
 * The sums over recent requests that only operators see. All processes add to them. They have keys of their own, because
 * they are several times as many as the public ones, which are read far more often, and because processes of earlier
 * releases, which do not know them, must not shorten their lives.
 */
export class TrafficStore {
  readonly #redis: RedisClient;
  readonly #readTimeMs: () => Promise<number>;
  readonly #endedMinutes: EndedBuckets<TrafficBucket>;
  readonly #endedHours: EndedBuckets<TrafficBucket>;

  /** @param readTimeMs Unix milliseconds; Redis's own clock by default */
  constructor(redis: RedisClient, readTimeMs = () => readStatsClock(redis)) {
    this.#redis = redis;
    this.#readTimeMs = readTimeMs;
    this.#endedMinutes = new EndedBuckets((bucket) => this.#readBucket(minutes, bucket));
    this.#endedHours = new EndedBuckets((bucket) => this.#readBucket(hours, bucket));
  }

  /** Adds sums. After a failure, it is unknown whether Redis has added them. */
  async record(sums: ModelTraffic): Promise<void> {
    await recordSums(this.#redis, minutes, hours, toTrafficFields(sums.models));
  }

  /**
   * Reads the last 60 minutes, in parts of five, oldest first.
   * @throws AppError `service_unavailable`
   */
  async readLastHour(): Promise<readonly TrafficBucket[]> {
    return await this.#readBuckets(minutes, this.#endedMinutes);
  }

  /**
   * Reads the last 24 hours, oldest first.
   * @throws AppError `service_unavailable`
   */
  async readHours(): Promise<readonly TrafficBucket[]> {
    return await this.#readBuckets(hours, this.#endedHours);
  }

  /**
   * Counts the requests of a model in the last 60 minutes.
   * @throws AppError `service_unavailable`
   */
  async countLastHour(model: string): Promise<number> {
    const fields = requestCounts.map((name) => `${name}:${model}`);
    return await callRedis(async () => {
      const buckets = findBuckets(lastHourWindow, await this.#readTimeMs());
      const counts = await Promise.all(
        buckets.map((bucket) => this.#redis.hmget(minutes.key(bucket), ...fields)),
      );
      return counts.flat().reduce((sum, count) => sum + Number(count ?? 0), 0);
    });
  }

  async #readBuckets(
    { window, key }: Buckets,
    endedBuckets: EndedBuckets<TrafficBucket>,
  ): Promise<readonly TrafficBucket[]> {
    return await callRedis(async () => {
      const [current, ...ended] = findBuckets(window, await this.#readTimeMs());
      const sums = await endedBuckets.get(ended);
      return [...sums.toReversed(), await this.#readBucket({ window, key }, current!)];
    });
  }

  async #readBucket({ window, key }: Buckets, bucket: number): Promise<TrafficBucket> {
    return {
      startMs: bucket * window.bucketSeconds * 1_000,
      models: parseTrafficFields(await this.#redis.hgetall(key(bucket))),
    };
  }
}
