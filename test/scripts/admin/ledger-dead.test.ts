import test from 'ava';
import type { Verification } from '../../../scripts/admin/verify/verify-ledger.ts';
import { createRefillEvent } from '../../../shared/ledger/usage-event.ts';
import { redisKeys, shardOf } from '../../../shared/redis/redis-keys.ts';
import { readAdmin, runAdmin } from '../../support/admin.ts';
import { useStack } from '../../support/stack.ts';
import { waitFor } from '../../support/wait-for.ts';

test('entries that were set aside are shown, are a difference, and are put back', async (t) => {
  const stack = await useStack(t);
  const { id } = await stack.createAccount();
  const shard = shardOf(id);
  const event = JSON.stringify(createRefillEvent('a refill', id, 'test'));
  await stack.redis.xadd(redisKeys.ledgerStream(shard), '*', 'kind', 'gift', 'amount', '7', 'event', event);
  const dead = redisKeys.ledgerDead(shard);
  await waitFor('it to be set aside', async () => (await stack.redis.xlen(dead)) === 1);

  const [letter] = await readAdmin<object[]>(stack.env, 'ledger', 'dead');
  t.like(letter, { shard, account: id, fields: { kind: 'gift', amount: '7' } });
  const shown = await runAdmin(stack.env, 'ledger', 'dead');
  t.regex(shown.stdout, /has unknown kind gift/);
  const verified = await runAdmin(stack.env, 'ledger', 'verify', '--account', id, '--json');
  t.is(verified.exitCode, 1);
  const { differences } = JSON.parse(verified.stdout) as Verification;
  t.regex(differences[0]!.check, /^the ledger entry \d+-\d+ can be read$/);
  t.regex(differences[0]!.found, /has unknown kind gift/);

  // No release can read it, so it is set aside once more.
  t.deepEqual(await readAdmin(stack.env, 'ledger', 'retry'), { put_back: 1 });
  await waitFor('it to be set aside again', async () => (await stack.redis.xlen(dead)) === 1);
  const [again] = await readAdmin<object[]>(stack.env, 'ledger', 'dead');
  t.like(again, { shard, account: id, fields: { kind: 'gift', amount: '7', event } });
});
