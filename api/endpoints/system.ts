import { apiVersion, type Health } from '../../shared/contract/system.ts';
import { queueNames } from '../../shared/queue/job-kinds.ts';
import type { ApiContext } from '../middleware/request-context.ts';
import type { Services } from '../services.ts';

/** A probe every few hundred milliseconds must not become a load of its own. */
const cacheMs = 1_000;

export function getHealth(services: Services) {
  let cached: Promise<Health> | null = null;
  let cachedAtMs = 0;
  return async (context: ApiContext): Promise<void> => {
    if (cached === null || Date.now() - cachedAtMs > cacheMs) {
      cachedAtMs = Date.now();
      cached = checkHealth(services);
    }
    const health = await cached;
    context.status = health.status === 'down' ? 503 : 200;
    context.body = health;
  };
}

async function checkHealth({ redis, mongo, objects, workers }: Services): Promise<Health> {
  const [redisOk, mongodbOk, s3Ok, workersOk] = await Promise.all([
    succeeds(async () => await redis.ping()),
    succeeds(async () => await mongo.db.command({ ping: 1 })),
    succeeds(async () => await objects.check()),
    succeeds(async () => {
      const alive = await Promise.all(queueNames.map((queue) => workers.findAlive(queue)));
      if (alive.some((ids) => ids.size === 0)) throw new Error('a queue has no worker');
    }),
  ]);
  const word = (ok: boolean): 'ok' | 'down' => (ok ? 'ok' : 'down');
  return {
    // Without Redis nothing is admitted; anything else away leaves something that works.
    status: !redisOk ? 'down' : mongodbOk && s3Ok && workersOk ? 'ok' : 'degraded',
    version: apiVersion,
    checks: { redis: word(redisOk), mongodb: word(mongodbOk), s3: word(s3Ok), workers: word(workersOk) },
  };
}

async function succeeds(check: () => Promise<unknown>): Promise<boolean> {
  try {
    await check();
    return true;
  } catch {
    // What failed is logged where it is noticed; a probe only wants to know whether.
    return false;
  }
}
