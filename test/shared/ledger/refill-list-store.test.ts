import { randomUUID } from 'node:crypto';
import test from 'ava';
import { runRefill } from '../../../shared/accounts/refill-script.ts';
import { RefillListStore } from '../../../shared/ledger/refill-list-store.ts';
import { createRefillEvent } from '../../../shared/ledger/usage-event.ts';
import { redisKeys, shardOf } from '../../../shared/platform/redis/redis-keys.ts';
import { openLedgerServices } from '../../support/ledger-services.ts';
import { interruptScripts } from '../../support/interrupt-scripts.ts';

test('a refill that moves to MongoDB between the two reads is in the log exactly once', async (t) => {
  const services = await openLedgerServices();
  t.teardown(() => services.close());
  const { id } = await services.createAccount();
  const codes = ['CODE-1', 'CODE-2', 'CODE-3'];
  for (const code of codes) {
    const event = createRefillEvent(randomUUID(), id, 'code', code);
    await runRefill(services.redis, { amountNano: 1n, freeRequests: 0, event });
  }
  const account = await services.hotAccounts.get(id);
  t.is(account.refills, 3);
  const stream = redisKeys.ledgerStream(shardOf(id));
  for (const count of [1, 2, 3]) {
    // Between the two reads, the ledger reader moves one, two and then three entries to MongoDB.
    const redis = interruptScripts(services.redis, () => services.moveSome(shardOf(id), count));
    const { totalCount, rows } = await new RefillListStore(services.ledger, redis).readPage(account, 1, 20);
    t.is(totalCount, 3);
    t.deepEqual(
      rows.map((row) => row.code),
      codes.toReversed(),
    );
  }
  t.is(await services.redis.xlen(stream), 0);
});

test('a refill that is in neither store is searched for only once', async (t) => {
  const services = await openLedgerServices();
  t.teardown(() => services.close());
  const { id } = await services.createAccount();
  const event = createRefillEvent(randomUUID(), id, 'code', 'CODE');
  await runRefill(services.redis, { amountNano: 1n, freeRequests: 0, event });
  let scripts = 0;
  const redis = interruptScripts(services.redis, async () => {
    scripts += 1;
  });
  // The account counts one refill too many, as if Redis had lost a refill and reused its ordinal.
  const { totalCount, rows } = await new RefillListStore(services.ledger, redis).readPage(
    { id, refills: 2 },
    1,
    20,
  );
  t.is(totalCount, 1);
  t.deepEqual(
    rows.map((row) => row.code),
    ['CODE'],
  );
  t.is(scripts, 1);
});
