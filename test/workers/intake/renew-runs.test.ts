import { randomUUID } from 'node:crypto';
import test from 'ava';
import { JobTurns } from '../../../shared/jobs/job-turns-store.ts';
import { jobLeaseMs } from '../../../shared/jobs/run-job-scripts.ts';
import type { RedisClient } from '../../../shared/redis/redis-client.ts';
import { createLogger } from '../../../shared/runtime/logger.ts';
import { renewRuns } from '../../../workers/intake/renew-runs.ts';
import { useRedis } from '../../support/use-redis.ts';

const redis = useRedis(test);

const line = { queue: 'chat', model: 'model' } as const;

const createRun = () => ({
  line,
  taken: { id: randomUUID(), accountId: randomUUID(), attempt: 1, body: null, bytes: 0, free: false },
  hasBegun: true,
});

test('a job that ends while leases are renewed does not count as running again', async (t) => {
  const turns = new JobTurns(redis());
  const [ends, goesOn] = [createRun(), createRun()];
  const active = new Map([ends, goesOn].map((run) => [run.taken.id, run]));
  for (const { taken } of active.values()) await turns.started(line, taken.id, jobLeaseMs);
  const end = async (): Promise<void> => {
    active.delete(ends.taken.id);
    await turns.ended(line, ends.taken.id, 100);
  };
  const answersLate = new Proxy(redis(), {
    get: (target, name) =>
      name === 'evalsha' || name === 'eval'
        ? async (...args: Parameters<RedisClient['eval']>): Promise<unknown> => {
            const answer = await target[name](...args);
            await end();
            return answer;
          }
        : (Reflect.get(target, name, target) as unknown),
  });
  const log = createLogger('test', 'silent');
  await renewRuns({ redis: answersLate, turns, active, log }, () => undefined);
  t.is((await turns.counts('chat')).running, 1);
});
