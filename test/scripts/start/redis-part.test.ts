import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { Redis } from 'ioredis';
import { findRedis } from '../../../scripts/embedded/redis.ts';
import { chooseRedis } from '../../../scripts/start/parts.ts';
import { loadSecrets } from '../../../scripts/start/secrets-file.ts';
import { SupervisedPart } from '../../../scripts/start/supervise.ts';
import { ConfigError } from '../../../shared/platform/runtime/config-error.ts';
import { readEnvironment } from '../../../shared/platform/config/config.ts';
import { waitFor } from '../../support/wait-for.ts';
import { EventLog, makeFolder } from './fake-parts.ts';

async function connectTo(url: string): Promise<Redis> {
  const redis = new Redis(url, { lazyConnect: true, retryStrategy: () => null });
  await redis.connect();
  return redis;
}

test('after a kill, the embedded Redis has the same data and port; its password is not in its arguments', async (t) => {
  const dataDir = makeFolder(t);
  const context = { env: process.env, values: readEnvironment({}), dataDir, secrets: loadSecrets(dataDir) };
  const redis = await chooseRedis(context);
  const { spec } = redis;
  const events = new EventLog();
  const part = new SupervisedPart(spec!, events);
  t.teardown(() => part.stop());
  await part.start();
  const url = redis.endpoints().REDIS_URL!;
  t.false(spec!.launch().args.join(' ').includes(new URL(url).password));

  const before = await connectTo(url);
  await before.set('kopeck', '1');
  t.deepEqual(await before.config('GET', 'maxmemory-policy'), ['maxmemory-policy', 'noeviction']);
  t.deepEqual(await before.config('GET', 'appendfsync'), ['appendfsync', 'everysec']);
  const disconnected = once(before, 'close');
  process.kill(part.pid!, 'SIGKILL');
  await disconnected;
  await waitFor('the part to run again', () => events.restarts.length === 1);

  const after = await connectTo(url);
  t.is(await after.get('kopeck'), '1');
  after.disconnect();
  const unauthenticated = new Redis(url.replace(/:[^:@]*@/, ''), { retryStrategy: () => null });
  unauthenticated.on('error', () => undefined); // The command below throws the same error.
  await t.throwsAsync(unauthenticated.get('kopeck'), { message: /NOAUTH/ });
  unauthenticated.disconnect();
});

test('each start has a new Redis password, whatever is stored', async (t) => {
  const dataDir = makeFolder(t);
  writeFileSync(join(dataDir, 'secrets.json'), '{"redisPassword": "kept"}');
  const passwordOfStart = async (): Promise<string> => {
    const context = { env: process.env, values: readEnvironment({}), dataDir, secrets: loadSecrets(dataDir) };
    return new URL((await chooseRedis(context)).endpoints().REDIS_URL!).password;
  };
  const passwords = [await passwordOfStart(), await passwordOfStart()];
  t.is(new Set([...passwords, 'kept']).size, 3);
  for (const password of passwords) t.regex(password, /^[A-Za-z0-9_-]{32}$/);
});

test('if there is no Redis, one sentence explains how to get it', (t) => {
  const error = t.throws(() => findRedis(join(makeFolder(t), 'bin')), { instanceOf: ConfigError });
  t.regex(error?.message ?? '', /install Redis 7 or later .* or set REDIS_URL/);
});
