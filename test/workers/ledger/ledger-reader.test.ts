import { randomUUID } from 'node:crypto';
import test from 'ava';
import { LedgerStore } from '../../../shared/ledger/ledger-store.ts';
import { redisKeys, shardCount, shardOf } from '../../../shared/platform/redis/redis-keys.ts';
import { createLogger } from '../../../shared/platform/runtime/logger.ts';
import { Faults } from '../../../workers/reporting/faults.ts';
import { openMongo } from '../../../shared/platform/storage/mongo-client.ts';
import { startLedgerReader } from '../../../workers/ledger/ledger-reader.ts';
import { ShardLeases } from '../../../workers/ledger/shard-leases.ts';
import { openLedgerServices } from '../../support/ledger-services.ts';
import { findStablePort } from '../../support/stable-port.ts';
import { waitFor } from '../../support/wait-for.ts';

test('entries with ids below the recorded trim position are still read from the stream', async (t) => {
  const services = await openLedgerServices();
  t.teardown(() => services.close());
  const { redis } = services;
  const { id } = await services.createAccount({ balanceNano: 5n });
  // Simulates a Redis that lost data: its trim position is from MongoDB, and its entries have lower ids.
  const later = `${Date.now() + 60_000}-0`;
  await redis.set(redisKeys.ledgerTrimmed(shardOf(id)), later);
  await services.moveAll();
  t.is((await services.accounts.findById(id))?.balanceNano, 5n);
  t.is(await redis.get(redisKeys.ledgerTrimmed(shardOf(id))), later);
});

test('if only one worker cannot reach MongoDB, it gives its ledger shards to workers that can', async (t) => {
  const services = await openLedgerServices();
  t.teardown(() => services.close());
  const log = createLogger('test', 'silent');
  const unreachable = openMongo(`mongodb://127.0.0.1:${await findStablePort()}/`, log);
  t.teardown(() => unreachable.close());
  const workerId = randomUUID();
  const { redis, accounts, hotAccounts } = services;
  const { id } = await services.createAccount({ balanceNano: 5n });
  const cutOffReader = startLedgerReader({
    redis,
    store: new LedgerStore(unreachable.db),
    accounts,
    hotAccounts,
    leases: new ShardLeases(redis, workerId, redisKeys.ledgerLease),
    faults: new Faults(log),
    log,
  });
  t.teardown(() => cutOffReader.stop());
  const shards = Array.from({ length: shardCount }, (_, shard) => shard);
  await waitFor('the worker to hold every shard', async () => {
    const holders = await Promise.all(shards.map((shard) => redis.get(redisKeys.ledgerLease(shard))));
    return holders.every((holder) => holder === workerId);
  });

  const reader = services.startReader();
  t.teardown(() => reader.stop());
  const isStored = async (): Promise<boolean> => (await accounts.findById(id))?.balanceNano === 5n;
  await waitFor('the balance to be in MongoDB', isStored, 15_000);
  t.not(await redis.get(redisKeys.ledgerLease(shardOf(id))), workerId);
});
