import { randomUUID } from 'node:crypto';
import test from 'ava';
import { ReasoningStore } from '../../../shared/work/reasoning-store.ts';
import { createRedis } from '../../../shared/platform/redis/redis-client.ts';
import { createLogger } from '../../../shared/platform/runtime/logger.ts';
import { findKeys } from '../../support/all-of-redis.ts';
import { useRedis } from '../../support/use-redis.ts';

const redis = useRedis(test);
const log = createLogger('test', 'silent');

test('data saved for a call is loaded by the hash of the call, and only for the same account', async (t) => {
  const store = new ReasoningStore(redis(), log);
  const [own, other] = [randomUUID(), randomUUID()];
  const value = { kind: 'test', blocks: [{ text: 'thought', signature: 'x' }] };
  await store.save(own, [
    { hash: 'one', value },
    { hash: 'two', value: { kind: 'second' } },
  ]);
  const loaded = await store.load(own, ['one', 'unknown', 'two', 'one']);
  t.deepEqual(Object.fromEntries(loaded), { one: value, two: { kind: 'second' } });
  t.is((await store.load(other, ['one'])).size, 0);
  t.is((await store.load(own, [])).size, 0);
});

test('if a conversation continues, the expiry of its data is extended', async (t) => {
  const store = new ReasoningStore(redis(), log);
  const account = randomUUID();
  await store.save(account, [{ hash: 'one', value: { kind: 'test' } }]);
  const [key] = await findKeys(redis(), `mg:*:reasoning:${account}:*`);
  await redis().expire(key!, 60);
  await store.load(account, ['one']);
  t.true((await redis().ttl(key!)) > 3_600);
});

test('a request loads at most 4 MB, newest first, and data that is too large is not saved', async (t) => {
  const store = new ReasoningStore(redis(), log);
  const account = randomUUID();
  const hashes = Array.from({ length: 24 }, (_, index) => `h${index}`);
  await store.save(
    account,
    hashes.map((hash) => ({ hash, value: { text: 'x'.repeat(200_000) } })),
  );
  const loaded = await store.load(account, hashes);
  t.is(loaded.size, 20);
  t.deepEqual([...loaded.keys()], hashes.slice(4).toReversed());
  await store.save(account, [{ hash: 'large', value: { text: 'я'.repeat(200_000) } }]);
  t.is((await store.load(account, ['large'])).size, 0);
});

test('without Redis nothing is loaded, and no request fails', async (t) => {
  const away = createRedis('redis://127.0.0.1:1', 'commands', log);
  t.teardown(() => away.disconnect());
  const store = new ReasoningStore(away, log);
  await t.notThrowsAsync(store.save('account', [{ hash: 'one', value: {} }]));
  t.is((await store.load('account', ['one'])).size, 0);
});
