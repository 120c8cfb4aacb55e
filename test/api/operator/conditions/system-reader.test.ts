import test from 'ava';
import { SystemReader } from '../../../../api/operator/conditions/system-reader.ts';
import { redisKeys } from '../../../../shared/platform/redis/redis-keys.ts';
import { cooldownFields } from '../../../../shared/routing/candidate-keys.ts';
import { refusalReason } from '../../../../shared/routing/cooldowns.ts';
import { listCandidates } from '../../../../shared/routing/route-candidate.ts';
import { WorkerRegistryStore } from '../../../../shared/work/queue/worker-registry-store.ts';
import { createRoute } from '../../../support/routing.ts';
import { testOnOneRedis } from '../../../support/own-stores.ts';
import { useRedis } from '../../../support/use-redis.ts';
import { waitFor } from '../../../support/wait-for.ts';

const redis = useRedis(test);

const route = createRoute('vendor/model', { upstream: 'vendor', apiKeys: ['first key', 'second key'] });
let pings = 0;

/** A reader that has read nothing yet. */
const createReader = (): SystemReader =>
  new SystemReader({
    redis: redis(),
    mongo: { db: { command: () => Promise.resolve((pings += 1)) } } as never,
    objects: { check: () => Promise.reject(new Error('simulated')) } as never,
    catalog: { current: { models: [{ routes: [route] }, { routes: [route] }] } } as never,
    workers: new WorkerRegistryStore(redis()),
  });

const read = () => createReader().read();

test.serial('concurrent callers, and those of the next second, share one reading', async (t) => {
  const reader = createReader();
  const first = await Promise.all([reader.read(), reader.read()]);
  t.is(first[0], first[1]);
  t.is(pings, 1);
  t.like(first[0], { isRedisUp: true, isMongoUp: true, isStorageUp: false });
});

test.serial(
  'the lag of the ledger is what waits in all streams, and the age of the oldest entry',
  async (t) => {
    t.deepEqual((await read()).ledger, { entries: 0, maxShardEntries: 0, oldestMs: 0, deadEntries: 0 });
    const [seconds] = await redis().time();
    const streams = [redisKeys.ledgerStream(3), redisKeys.ledgerStream(9)] as const;
    await redis().xadd(streams[0], `${(Number(seconds) - 100) * 1_000}-0`, 'kind', 'usage');
    await redis().xadd(streams[0], `${(Number(seconds) - 50) * 1_000}-0`, 'kind', 'usage');
    // The clock of this shard was ahead.
    await redis().xadd(streams[1], `${(Number(seconds) + 5_000) * 1_000}-0`, 'kind', 'usage');
    const { ledger } = await read();
    t.like(ledger, { entries: 3, maxShardEntries: 2 });
    t.true(ledger!.oldestMs >= 100_000 && ledger!.oldestMs < 160_000);
    await redis().del(streams[0]);
    await redis().del(streams[1]);
  },
);

test.serial('a key counts as refused while all accounts wait for it for that reason', async (t) => {
  const [first, second] = listCandidates(route).map(cooldownFields);
  const { fingerprint } = listCandidates(route)[0]!;
  const until = (ms: number): string => String(Date.now() + ms);
  const refused = refusalReason(401, 'invalid_api_key');
  await redis().hset(redisKeys.keysOnCooldown('vendor'), {
    [first!.key]: `${until(600_000)} ${refused}`,
    [first!.keyOnRoute]: `${until(600_000)} ${refusalReason(403, null)}`,
    [second!.key]: `${until(-1_000)} ${refused}`,
    [second!.keyOnRoute]: `${until(600_000)} rate limit reached`,
    [second!.keyForSome]: `${until(600_000)} ${refused}`,
    'a key of an earlier catalog': `${until(600_000)} ${refused}`,
  });
  const { refusedKeys } = await read();
  t.is(refusedKeys?.length, 1);
  t.like(refusedKeys![0], { upstream: 'vendor', fingerprint, usableKeys: 1, keys: 2, deadModels: [] });
});

testOnOneRedis(test.serial)('the memory of Redis counts with its limit and its policy', async (t) => {
  t.teardown(async () => {
    await redis().config('SET', 'maxmemory', '0');
    await redis().config('SET', 'maxmemory-policy', 'noeviction');
  });
  t.deepEqual((await read()).memory, {
    usedShare: null,
    used: null,
    isRefusing: false,
    evictionPolicy: null,
  });
  await redis().config('SET', 'maxmemory', '1gb');
  await redis().config('SET', 'maxmemory-policy', 'allkeys-lru');
  const { memory } = await read();
  t.is(memory?.evictionPolicy, 'allkeys-lru');
  t.true(memory!.usedShare! > 0 && memory!.usedShare! < 1);
});

testOnOneRedis(test.serial)(
  'a Redis that refuses commands for lack of memory is noticed by the next reading',
  async (t) => {
    const reader = createReader();
    t.false((await reader.read()).memory!.isRefusing);
    await redis().config('SET', 'maxmemory', '1');
    t.teardown(() => redis().config('SET', 'maxmemory', '0'));
    await t.throwsAsync(redis().set('mg:test', 'x'), { message: /OOM/ });
    await waitFor('the next reading', async () => (await reader.read()).memory?.isRefusing);
  },
);
