import { operations } from '../../contract/operations.ts';
import { apiVersion, type Health } from '../../../shared/contract/system.ts';
import { queueNames } from '../../../shared/work/queue/job-kinds.ts';
import { findEvictionPolicy } from '../../../shared/platform/redis/eviction-policy.ts';
import { within } from '../../../shared/platform/runtime/within.ts';
import { StatsCache } from './stats-cache.ts';
import { defineEndpoint } from '../../endpoint.ts';
import { beginInTurns } from '../../http/middleware/begin-in-turns.ts';
import { PreparedBodies, PreparedBody } from '../../http/responses/prepared-body.ts';
import type { Services } from '../../services.ts';
import { sendPrepared } from '../../responses/send-prepared.ts';

/** How long a result is cached, so that frequent probes from many hosts do not cause significant load. */
const cacheMs = 1_000;
/** A check that takes longer is treated as failed. */
const checkTimeoutMs = 2_000;

export const getHealth = defineEndpoint(operations.getHealth, [beginInTurns], (services) => {
  const cache = new StatsCache({
    read: async () => ({ value: await checkHealth(services), validForMs: cacheMs }),
    log: services.log,
  });
  const bodies = new PreparedBodies();
  return async (context) => {
    const { value: health } = await cache.get();
    const status = health.status === 'down' ? 503 : 200;
    const body = bodies.get([health], '', () => PreparedBody.ofJson(health));
    await sendPrepared(context, body, 'no-store', status);
  };
});

async function checkHealth({ redis, mongo, objects, workers }: Services): Promise<Health> {
  const [redisOk, keepsKeys, mongodbOk, s3Ok, workersOk] = await Promise.all([
    succeeds(async () => await redis.ping()),
    succeeds(async () => {
      if ((await findEvictionPolicy(redis)) !== null) throw new Error('Redis may evict keys');
    }),
    succeeds(async () => await mongo.db.command({ ping: 1 })),
    succeeds(async (signal) => await objects.check(signal)),
    succeeds(async () => {
      const loads = await Promise.all(queueNames.map((queue) => workers.sumLoads(queue)));
      if (loads.some(({ taking }) => taking === 0)) throw new Error('no worker takes jobs from a queue');
      if (loads.some(({ faults }) => faults > 0)) throw new Error('a worker reports faults');
    }),
  ]);
  const statusOf = (ok: boolean): 'ok' | 'down' => (ok ? 'ok' : 'down');
  return {
    // Without Redis no request is admitted. Without any of the others, some operations still work.
    status: !redisOk ? 'down' : keepsKeys && mongodbOk && s3Ok && workersOk ? 'ok' : 'degraded',
    version: apiVersion,
    checks: {
      redis: statusOf(redisOk),
      mongodb: statusOf(mongodbOk),
      s3: statusOf(s3Ok),
      workers: statusOf(workersOk),
    },
  };
}

async function succeeds(check: (signal: AbortSignal) => Promise<unknown>): Promise<boolean> {
  const signal = AbortSignal.timeout(checkTimeoutMs);
  const checking = check(signal).then(() => true);
  try {
    // Not every check supports cancellation.
    return await within(checkTimeoutMs, checking, () => false);
  } catch {
    // The failure is logged where it occurs; the probe only needs the status.
    return false;
  }
}
