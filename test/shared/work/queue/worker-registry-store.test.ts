import test from 'ava';
import { WorkerRegistryStore } from '../../../../shared/work/queue/worker-registry-store.ts';
import { redisKeys } from '../../../../shared/platform/redis/redis-keys.ts';
import { useRedis } from '../../../support/use-redis.ts';
import { idleLoad } from '../../../support/worker-load.ts';
import { liveness } from '../../../../shared/platform/redis/liveness.ts';

const redis = useRedis(test);

test("if Redis's clock steps back, a dead worker does not count as alive for longer than usual", async (t) => {
  const registry = new WorkerRegistryStore(redis());
  const [second] = await redis().time();
  const key = redisKeys.workers('chat');
  await redis().zadd(
    key,
    (Number(second) + 3_600) * 1_000,
    'dead',
    (Number(second) + 3_600) * 1_000,
    'living',
  );
  await registry.beat('chat', 'living', idleLoad);
  t.deepEqual(await registry.findAlive('chat'), new Set(['dead', 'living']), 'it may only be late');
  const untilMs = Number(await redis().zscore(key, 'dead'));
  t.true(untilMs <= (Number(second) + 2) * 1_000 + liveness.worker.deadMs, String(untilMs));
});

test("if Redis's clock steps back after the last worker died, the worker does not count as alive for longer than usual", async (t) => {
  const registry = new WorkerRegistryStore(redis());
  const [second] = await redis().time();
  const key = redisKeys.workers('image');
  await redis().zadd(key, (Number(second) + 3_600) * 1_000, 'dead');
  t.deepEqual(await registry.findAlive('image'), new Set(['dead']));
  const untilMs = Number(await redis().zscore(key, 'dead'));
  t.true(untilMs <= (Number(second) + 2) * 1_000 + liveness.worker.deadMs, String(untilMs));
});

test('a worker that cannot take work is alive for what it runs, but its queue counts as unserved', async (t) => {
  const registry = new WorkerRegistryStore(redis());
  await registry.beat('embedding', 'stuck', { ...idleLoad, isTaking: false });
  const find = async () => (await registry.findWorkers(['embedding']))[0]!;
  t.deepEqual(await find(), { alive: new Set(['stuck']), servedAgoMs: null, faults: 0 });
  t.like(await registry.sumLoads('embedding'), { workers: 1, taking: 0 });
  await registry.beat('embedding', 'taking', idleLoad);
  const { alive, servedAgoMs } = await find();
  t.deepEqual(alive, new Set(['stuck', 'taking']));
  t.true(servedAgoMs! < liveness.worker.deadMs);
});
