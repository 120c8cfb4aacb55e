import test from 'ava';
import { verifyLedger } from '../../shared/admin/verify/verify-ledger.ts';
import { ReservationStore } from '../../shared/money/reservation-store.ts';
import { PriceStore } from '../../shared/ledger/price-store.ts';
import { redisKeys, shardOf } from '../../shared/platform/redis/redis-keys.ts';
import { charge } from '../support/billing.ts';
import { openLedgerServices } from '../support/ledger-services.ts';
import { nameDatabase, requireMongod, useRealMongo } from '../support/real-mongod.ts';
import { waitFor } from '../support/wait-for.ts';

const realTest = requireMongod(test);

realTest(
  'with an arbiter, charges that only the primary has stay on the stream, so none is lost if the primary is rolled back',
  async (t) => {
    const set = await useRealMongo(t, 'arbiter');
    const services = await openLedgerServices({ mongoUrl: nameDatabase(set.url) });
    t.teardown(() => services.close());
    const { redis, ledger, accounts, mongo } = services;
    const account = await services.createAccount({ balanceNano: 1_000n });
    const stream = redisKeys.ledgerStream(shardOf(account.id));
    const chargeSome = (count: number): Promise<string[]> =>
      Promise.all(Array.from({ length: count }, () => charge(redis, account, 1n)));
    const isApplied = async (): Promise<boolean> => (await redis.xlen(stream)) === 0;
    const reader = services.startReader();
    t.teardown(() => reader.stop());
    const before = await chargeSome(10);
    await waitFor('the first charges to be applied', isApplied);

    const primary = await set.findPrimary();
    const secondary = 1 - primary;
    await set.kill(secondary);
    const atRisk = await chargeSome(50);
    const countOnPrimary = (ids: readonly string[]): Promise<number> =>
      ledger.entries.countDocuments({ _id: { $in: [...ids] } }, { readConcern: 'local' });
    await waitFor('the primary to have them', async () => (await countOnPrimary(atRisk)) === atRisk.length);
    t.is(await redis.xlen(stream), atRisk.length);
    // Reads for decisions about money do not return entries that may still be rolled back.
    t.is((await ledger.findEntries(atRisk)).length, 0);

    await set.kill(primary);
    await set.restart(secondary);
    t.is(await set.findPrimary(), secondary);
    t.true((await countOnPrimary(atRisk)) < atRisk.length);
    const after = await chargeSome(5);
    await set.restart(primary);
    await waitFor('the ledger to catch up', isApplied);

    const charged = [...before, ...atRisk, ...after];
    t.is((await ledger.findEntries(charged)).length, charged.length);
    t.is((await accounts.findById(account.id))?.balanceNano, 1_000n - BigInt(charged.length));
    const stores = { redis, accounts, ledger };
    const more = { prices: new PriceStore(mongo.db), reservations: new ReservationStore(redis) };
    const options = { account: account.id, releaseOrphans: false, onProgress: () => undefined };
    const { entries, differences } = await verifyLedger({ ...stores, ...more }, options);
    t.is(entries, charged.length + 1);
    // This test has no catalog, so no price is stored.
    t.deepEqual(
      differences.filter(({ check }) => check !== 'the price is stored'),
      [],
    );
  },
);
