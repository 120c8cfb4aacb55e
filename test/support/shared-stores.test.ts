import test from 'ava';
import { Redis } from 'ioredis';
import { withDatabase } from './given-mongo.ts';
import { claimSharedRedis } from './given-redis.ts';
import { startTestRedis } from './redis.ts';

test('the URL of a test database has the given servers and its own name, and users still authenticate in the original database', (t) => {
  t.is(withDatabase('mongodb://a:1,b:2/?replicaSet=rs', 'own'), 'mongodb://a:1,b:2/own?replicaSet=rs');
  t.is(withDatabase('mongodb://u:p@a', 'own'), 'mongodb://u:p@a/own?authSource=admin');
  t.is(withDatabase('mongodb+srv://u:p@a/theirs', 'own'), 'mongodb+srv://u:p@a/own?authSource=theirs');
  t.is(withDatabase('mongodb://u:p@a/x?authSource=users', 'own'), 'mongodb://u:p@a/own?authSource=users');
});

test('the Redis at REDIS_URL is emptied of the gateway’s keys for one test at a time, and rejected if it holds other keys', async (t) => {
  const server = await startTestRedis();
  t.teardown(() => server.stop());
  const redis = new Redis(server.url);
  t.teardown(() => redis.disconnect());
  await redis.mset('mg:key:a', '1', '{bull}:image:id', '1');
  const close = await claimSharedRedis(server.url);
  t.is(await redis.dbsize(), 0);
  t.is(await claimSharedRedis(server.url), null);
  await redis.set('mg:key:b', '1');
  await close!();
  t.is(await redis.dbsize(), 0);

  await redis.mset('theirs', '1', 'mg:key:c', '1');
  await t.throwsAsync(claimSharedRedis(server.url), { message: /such as "theirs"/ });
  t.is(await redis.dbsize(), 2, 'nothing was deleted');
});
