import { apiVersion, type Health } from '../../shared/contract/system.ts';
import { queueNames } from '../../shared/queue/job-kinds.ts';
import { within } from '../../shared/runtime/within.ts';
import { FiguresCache } from '../../shared/traffic/figures-cache.ts';
import type { ApiContext } from '../middleware/request-context.ts';
import { PreparedBodies, PreparedBody } from '../present/prepared-body.ts';
import type { Services } from '../services.ts';
import { sendPrepared } from './send-prepared.ts';

/** Probes of a whole fleet must not become a load of their own. */
const cacheMs = 1_000;
/** What answers later is as good as away, whatever it waits for. */
const checkTimeoutMs = 2_000;

export function getHealth(services: Services) {
  const cache = new FiguresCache({
    read: async () => ({ value: await checkHealth(services), validForMs: cacheMs }),
    log: services.log,
  });
  const bodies = new PreparedBodies();
  return async (context: ApiContext): Promise<void> => {
    const { value: health } = await cache.get();
    const status = health.status === 'down' ? 503 : 200;
    const body = bodies.get([health], '', () => PreparedBody.ofJson(health));
    await sendPrepared(context, body, 'no-store', status);
  };
}

async function checkHealth({ redis, mongo, objects, workers }: Services): Promise<Health> {
  const [redisOk, mongodbOk, s3Ok, workersOk] = await Promise.all([
    succeeds(async () => await redis.ping()),
    succeeds(async () => await mongo.db.command({ ping: 1 })),
    succeeds(async (signal) => await objects.check(signal)),
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

async function succeeds(check: (signal: AbortSignal) => Promise<unknown>): Promise<boolean> {
  const signal = AbortSignal.timeout(checkTimeoutMs);
  const checking = check(signal).then(() => true);
  try {
    // Not everything that is asked can be told to stop.
    return await within(checkTimeoutMs, checking, () => false);
  } catch {
    // What failed is logged where it is noticed; a probe only wants to know whether.
    return false;
  }
}
