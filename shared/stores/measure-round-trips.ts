import { secondsBuckets, type ProcessMetrics } from '../platform/metrics/process-metrics.ts';
import { CorkingClient } from '../platform/redis/corking-client.ts';
import type { RedisClient } from '../platform/redis/redis-client.ts';
import type { MongoConnection } from '../platform/storage/mongo-client.ts';

export interface MeasuredStores {
  readonly redis: RedisClient;
  readonly mongo: MongoConnection;
}

/** Measures how long Redis and MongoDB take to reply, as this process sees it. Commands to a Redis Cluster are not measured. */
export function measureRoundTrips(metrics: ProcessMetrics, { redis, mongo }: MeasuredStores): void {
  const ofRedis = metrics.histogram(
    {
      name: 'redis_round_trip_seconds',
      help: 'Time from the first command of an event loop turn to its reply.',
      buckets: [...secondsBuckets.stores],
    },
    [],
  );
  if (redis instanceof CorkingClient) redis.onRoundTrip = (seconds) => ofRedis.observe(seconds);
  const ofMongo = metrics.histogram(
    {
      name: 'mongodb_round_trip_seconds',
      help: 'Time of a command.',
      buckets: [...secondsBuckets.stores],
    },
    ['outcome'],
  );
  const note = (outcome: string, duration: number): void => ofMongo.observe({ outcome }, duration / 1_000);
  mongo.client.on('commandSucceeded', ({ duration }) => note('success', duration));
  mongo.client.on('commandFailed', ({ duration }) => note('failure', duration));
}
