import { randomUUID } from 'node:crypto';
import test from 'ava';
import { JobTurns } from '../../../shared/work/jobs/job-turns-store.ts';
import type { RedisClient } from '../../../shared/platform/redis/redis-client.ts';
import { createLogger } from '../../../shared/platform/runtime/logger.ts';
import { renewRuns } from '../../../workers/intake/renew-runs.ts';
import { useRedis } from '../../support/use-redis.ts';
import { liveness } from '../../../shared/platform/redis/liveness.ts';

const redis = useRedis(test);

const line = { queue: 'chat', model: 'model' } as const;

const createRun = () => ({
  line,
  taken: {
    id: randomUUID(),
    accountId: randomUUID(),
    attempt: 1,
    body: null,
    bytes: 0,
    free: false,
    cancelInMs: null,
  },
  hasBegun: true,
});

test('if a job finishes while leases are renewed, it is not recorded as running again', async (t) => {
  const turns = new JobTurns(redis());
  const [finishing, continuing] = [createRun(), createRun()];
  const active = new Map([finishing, continuing].map((run) => [run.taken.id, run]));
  for (const { taken } of active.values()) await turns.markStarted(line, taken.id, liveness.job.deadMs);
  const finish = async (): Promise<void> => {
    active.delete(finishing.taken.id);
    await turns.markEnded(line, finishing.taken.id, 100);
  };
  const lateRedis = new Proxy(redis(), {
    get: (target, name) =>
      name === 'evalsha' || name === 'eval'
        ? async (...args: Parameters<RedisClient['eval']>): Promise<unknown> => {
            const result = await target[name](...args);
            await finish();
            return result;
          }
        : (Reflect.get(target, name, target) as unknown),
  });
  const log = createLogger('test', 'silent');
  await renewRuns({ redis: lateRedis, turns, active, log }, () => undefined);
  t.is((await turns.counts('chat')).running, 1);
});
