import { randomUUID } from 'node:crypto';
import test from 'ava';
import type { Verification } from '../../../shared/admin/verify/verify-ledger.ts';
import { redisKeys, shardOf } from '../../../shared/platform/redis/redis-keys.ts';
import { readAdmin, runAdmin } from '../../support/admin.ts';
import { useStack } from '../../support/stack.ts';
import { waitFor } from '../../support/wait-for.ts';

test('ledger dead lists entries that workers could not read, and ledger verify reports that they are not applied', async (t) => {
  const stack = await useStack(t);
  const { id } = await stack.createAccount({ balance: '1' });
  const shard = shardOf(id);
  const stream = redisKeys.ledgerStream(shard);
  const gift = await stack.redis.xadd(stream, '*', 'kind', 'gift', 'account', id, 'amount', '5');
  const damaged = ['kind', 'refill', 'account', id, 'id', randomUUID(), 'amount', '0', 'free', '0'];
  await stack.redis.xadd(stream, '*', ...damaged, 'event', '{}');
  await waitFor(
    'both entries to be copied',
    async () => (await stack.redis.xlen(redisKeys.ledgerDead(shard))) === 2,
  );

  const listed = await readAdmin<{ entry: string }[]>(stack.env, 'ledger', 'dead');
  const { entry } = listed[0]!;
  t.like(listed, [
    { stream_id: gift, account: id, counted: false, reason: 'kind is "gift"' },
    { account: id, counted: true, reason: 'its event has version none', fields: [...damaged, 'event', '{}'] },
  ]);
  const shown = await runAdmin(stack.env, 'ledger', 'dead');
  t.regex(shown.stdout, /entry +kind +counted +is +reason +amount\n +credited\n +again\n/);

  const verified = await runAdmin(stack.env, 'ledger', 'verify', '--account', id, '--json');
  t.is(verified.exitCode, 1);
  t.like((JSON.parse(verified.stdout) as Verification).differences, [
    { account: id, check: `the ledger entry ${entry} can be read`, found: 'kind is "gift"' },
  ]);

  t.deepEqual(await readAdmin(stack.env, 'ledger', 'discard', 'counted'), { discarded: 1 });
  t.like(await readAdmin(stack.env, 'ledger', 'discard', entry, '--dry-run'), {
    dry_run: true,
    effects: { kind: null, counted: false, uncharged: null, entries_left: 0 },
  });
  t.like(await readAdmin(stack.env, 'ledger', 'discard', entry), { discarded: 1, entry, account: id });
  t.deepEqual(await readAdmin(stack.env, 'ledger', 'dead'), []);
  t.is((await runAdmin(stack.env, 'ledger', 'verify')).exitCode, 0);
  const again = await runAdmin(stack.env, 'ledger', 'discard', entry);
  t.is(again.exitCode, 1);
  t.regex(again.stderr, /There is no entry \d+:\d+-0 among those that could not be read/);
  const wrong = await runAdmin(stack.env, 'ledger', 'discard', 'all');
  t.is(wrong.exitCode, 2);
  t.regex(wrong.stderr, /must look like 12:1764115200000-0, or be "counted"; it is "all"/);
});
