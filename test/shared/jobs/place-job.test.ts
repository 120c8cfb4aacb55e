import { randomUUID } from 'node:crypto';
import test from 'ava';
import { JobStore } from '../../../shared/jobs/job-store.ts';
import { placeJob } from '../../../shared/jobs/place-job-script.ts';
import { redisKeys, shardOf } from '../../../shared/redis/redis-keys.ts';
import { useRedis } from '../../support/use-redis.ts';

const redisOf = useRedis(test);

test('a job that was made just now is described as reading it describes it, with its place among its own', async (t) => {
  const redis = redisOf();
  const accountId = randomUUID();
  for (const [rank, webhookUrl] of [null, 'https://example.com/hook'].entries()) {
    const id = randomUUID();
    const createdAtMs = Date.now() + rank;
    const reservation = `${accountId} 100 0 ${createdAtMs}`;
    await redis.hset(redisKeys.reservations(shardOf(accountId)), id, reservation);
    const placed = await placeJob(redis, redis, {
      id,
      accountId,
      queue: 'embedding',
      model: 'demo',
      operation: 'embeddings',
      createdAtMs,
      deadlineAtMs: createdAtMs + 60_000,
      format: 'float',
      webhookUrl,
      body: Buffer.from('{}'),
    });
    t.is(placed.rank, rank);
    t.is(placed.weight, 1);
    t.deepEqual({ job: placed.job, rank: placed.rank }, (await new JobStore(redis).find(accountId, id))!);
  }
});
