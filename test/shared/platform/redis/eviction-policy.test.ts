import test from 'ava';
import { checkEviction, findEvictionPolicy } from '../../../../shared/platform/redis/eviction-policy.ts';
import { ConfigError } from '../../../../shared/platform/runtime/config-error.ts';
import { captureLog } from '../../../support/captured-log.ts';
import { useRedis } from '../../../support/use-redis.ts';

const redis = useRedis(test);

test.serial('a Redis that may evict keys is an error in the log, and is refused in production', async (t) => {
  const { log, lines } = captureLog();
  await checkEviction(redis(), log, { isProduction: true });
  t.is(await findEvictionPolicy(redis()), null);
  t.deepEqual(lines, []);
  await redis().config('SET', 'maxmemory-policy', 'allkeys-lru');
  t.teardown(() => redis().config('SET', 'maxmemory-policy', 'noeviction'));
  t.is(await findEvictionPolicy(redis()), 'allkeys-lru');
  await checkEviction(redis(), log, { isProduction: false });
  t.like(lines[0], { level: 50, policy: 'allkeys-lru' });
  const error = await t.throwsAsync(checkEviction(redis(), log, { isProduction: true }), {
    instanceOf: ConfigError,
  });
  t.regex(error.message, /Set maxmemory-policy to noeviction/);
});

test('a Redis whose user may not read its policy is not reported', async (t) => {
  const refusing = { info: () => Promise.reject(new Error('NOPERM')) };
  t.is(await findEvictionPolicy(refusing as never), null);
});
