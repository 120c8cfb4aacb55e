import { randomUUID } from 'node:crypto';
import test from 'ava';
import { ReasoningStore } from '../../../shared/reasoning/reasoning-store.ts';
import { createRedis } from '../../../shared/redis/redis-client.ts';
import { createLogger } from '../../../shared/runtime/logger.ts';
import { useRedis } from '../../support/use-redis.ts';

const redis = useRedis(test);
const log = createLogger('test', 'silent');
const [ann, bob, carl] = ['ann', 'bob', 'carl'].map((name) => name.padEnd(32, '-')) as [
  string,
  string,
  string,
];
const callOf = (hash: string, instructionsHash = ann) => ({ hash, instructionsHash });

test('what was saved with a call is loaded by its hash, for its own account alone', async (t) => {
  const store = new ReasoningStore(redis(), log);
  const [own, other] = [randomUUID(), randomUUID()];
  const value = { kind: 'test', blocks: [{ text: 'thought', signature: 'x' }] };
  await store.save(own, [
    { ...callOf('one'), value },
    { ...callOf('two'), value: { kind: 'second' } },
  ]);
  const loaded = await store.load(
    own,
    ['one', 'unknown', 'two', 'one'].map((hash) => callOf(hash)),
  );
  t.deepEqual(Object.fromEntries(loaded), { one: value, two: { kind: 'second' } });
  t.is((await store.load(other, [callOf('one')])).size, 0);
  t.is((await store.load(own, [])).size, 0);
});

test('a call that was made under several instructions is loaded by its own alone, under one by any', async (t) => {
  const store = new ReasoningStore(redis(), log);
  const account = randomUUID();
  const read = async (instructions: string): Promise<unknown> =>
    (await store.load(account, [callOf('one', instructions)])).get('one') ?? null;
  const save = async (instructions: string, of: string): Promise<void> =>
    await store.save(account, [{ ...callOf('one', instructions), value: { of } }]);
  await save(ann, 'first');
  // Agents write the date into their instructions.
  t.deepEqual(await read(bob), { of: 'first' });
  await save(ann, 'ann');
  await save(bob, 'bob');
  t.deepEqual([await read(ann), await read(bob), await read(carl)], [{ of: 'ann' }, { of: 'bob' }, null]);
  await save(bob, 'bob again');
  await save(carl, 'carl');
  t.deepEqual(
    [await read(ann), await read(bob), await read(carl)],
    [{ of: 'ann' }, { of: 'bob again' }, { of: 'carl' }],
  );
  for (const key of await redis().keys(`mg:*:reasoning:${account}:*`)) {
    t.true((await redis().ttl(key)) > 3_600, key);
  }
});

test('a conversation that goes on keeps what it needs for longer', async (t) => {
  const store = new ReasoningStore(redis(), log);
  const account = randomUUID();
  await store.save(account, [{ ...callOf('one'), value: { kind: 'test' } }]);
  const [key] = await redis().keys(`mg:*:reasoning:${account}:*`);
  await redis().expire(key!, 60);
  await store.load(account, [callOf('one')]);
  t.true((await redis().ttl(key!)) > 3_600);
});

test('one request loads no more than 4 MB, the latest first, and what is too large is not saved', async (t) => {
  const store = new ReasoningStore(redis(), log);
  const account = randomUUID();
  const hashes = Array.from({ length: 24 }, (_, index) => `h${index}`);
  await store.save(
    account,
    hashes.map((hash) => ({ ...callOf(hash), value: { text: 'x'.repeat(200_000) } })),
  );
  const loaded = await store.load(
    account,
    hashes.map((hash) => callOf(hash)),
  );
  t.is(loaded.size, 20);
  t.deepEqual([...loaded.keys()], hashes.slice(4).toReversed());
  await store.save(account, [{ ...callOf('large'), value: { text: 'я'.repeat(200_000) } }]);
  t.is((await store.load(account, [callOf('large')])).size, 0);
});

test('without Redis nothing is loaded, and nobody fails', async (t) => {
  const away = createRedis('redis://127.0.0.1:1', 'commands', log);
  t.teardown(() => away.disconnect());
  const store = new ReasoningStore(away, log);
  await t.notThrowsAsync(store.save('account', [{ ...callOf('one'), value: {} }]));
  t.is((await store.load('account', [callOf('one')])).size, 0);
});
