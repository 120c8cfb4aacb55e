import { once } from 'node:events';
import { join } from 'node:path';
import test from 'ava';
import { Redis } from 'ioredis';
import { findRedis } from '../../../scripts/embedded/redis.ts';
import { chooseRedis } from '../../../scripts/start/parts.ts';
import { loadSecrets } from '../../../scripts/start/secrets-file.ts';
import { SupervisedPart } from '../../../scripts/start/supervise.ts';
import { ConfigError, readEnvironment } from '../../../shared/runtime/config.ts';
import { waitFor } from '../../support/wait-for.ts';
import { EventLog, makeFolder } from './fake-parts.ts';

async function connectTo(url: string): Promise<Redis> {
  const redis = new Redis(url, { lazyConnect: true, retryStrategy: () => null });
  await redis.connect();
  return redis;
}

test('the embedded Redis keeps its data and its port when it is killed, and its password is in no argument', async (t) => {
  const dataDir = makeFolder(t);
  const context = { env: process.env, values: readEnvironment({}), dataDir, secrets: loadSecrets(dataDir) };
  const redis = await chooseRedis(context);
  const { spec } = redis;
  const events = new EventLog();
  const part = new SupervisedPart(spec!, events);
  t.teardown(() => part.stop());
  await part.start();
  const url = redis.endpoints().REDIS_URL!;
  t.false(spec!.launch().args.join(' ').includes(context.secrets.redisPassword));

  const before = await connectTo(url);
  await before.set('kopeck', '1');
  t.deepEqual(await before.config('GET', 'maxmemory-policy'), ['maxmemory-policy', 'noeviction']);
  t.deepEqual(await before.config('GET', 'appendfsync'), ['appendfsync', 'everysec']);
  const cut = once(before, 'close');
  process.kill(part.pid!, 'SIGKILL');
  await cut;
  await waitFor('it runs again', () => events.restarts.length === 1);

  const after = await connectTo(url);
  t.is(await after.get('kopeck'), '1');
  after.disconnect();
  const stranger = new Redis(url.replace(/:[^:@]*@/, ''), { retryStrategy: () => null });
  stranger.on('error', () => undefined); // The command below tells the same.
  await t.throwsAsync(stranger.get('kopeck'), { message: /NOAUTH/ });
  stranger.disconnect();
});

test('where there is no Redis, one sentence says how to get it', (t) => {
  const error = t.throws(() => findRedis(join(makeFolder(t), 'bin')), { instanceOf: ConfigError });
  t.regex(error?.message ?? '', /install Redis 7 or later .* or set REDIS_URL/);
});
