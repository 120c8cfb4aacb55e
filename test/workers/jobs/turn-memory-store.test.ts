import { randomUUID } from 'node:crypto';
import test from 'ava';
import { createRedis } from '../../../shared/redis/redis-client.ts';
import { createLogger } from '../../../shared/runtime/logger.ts';
import { TurnMemoryStore } from '../../../workers/jobs/turn-memory-store.ts';
import { useRedis } from '../../support/use-redis.ts';

const redis = useRedis(test);
const log = createLogger('test', 'silent');

test('what was remembered with a tool call is recalled by its id, to its own account alone', async (t) => {
  const turns = new TurnMemoryStore(redis(), log);
  const [own, other] = [randomUUID(), randomUUID()];
  const value = { kind: 'test', blocks: [{ text: 'thought', signature: 'x' }] };
  await turns.remember(own, 'call_1', value);
  const recalled = await turns.recall(own, ['call_1', 'call_unknown', 'call_1']);
  t.deepEqual([...recalled], [['call_1', value]]);
  t.is((await turns.recall(other, ['call_1'])).size, 0);
  t.is((await turns.recall(own, [])).size, 0);
});

test('a conversation that goes on keeps what it needs for longer', async (t) => {
  const turns = new TurnMemoryStore(redis(), log);
  const account = randomUUID();
  await turns.remember(account, 'call_1', { kind: 'test' });
  const [key] = await redis().keys(`mg:*:remembered:${account}:*`);
  await redis().expire(key!, 60);
  await turns.recall(account, ['call_1']);
  t.true((await redis().ttl(key!)) > 3_600);
});

test('what is too large is not remembered, and ids of any form are taken', async (t) => {
  const turns = new TurnMemoryStore(redis(), log);
  const account = randomUUID();
  await turns.remember(account, 'large', { text: 'x'.repeat(300_000) });
  t.is((await turns.recall(account, ['large'])).size, 0);
  const odd = `${'й'.repeat(5_000)}\u0000:{}\n`;
  await turns.remember(account, odd, { kind: 'test' });
  t.deepEqual([...(await turns.recall(account, [odd]))], [[odd, { kind: 'test' }]]);
});

test('without Redis nothing is recalled, and nobody fails', async (t) => {
  const away = createRedis('redis://127.0.0.1:1', 'commands', log);
  t.teardown(() => away.disconnect());
  const turns = new TurnMemoryStore(away, log);
  await t.notThrowsAsync(turns.remember('account', 'call_1', {}));
  t.is((await turns.recall('account', ['call_1'])).size, 0);
});
