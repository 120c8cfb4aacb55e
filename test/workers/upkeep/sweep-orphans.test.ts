import { randomUUID } from 'node:crypto';
import test from 'ava';
import { runAdmission } from '../../../shared/billing/admit-script.ts';
import { ReservationStore } from '../../../shared/billing/reservation-store.ts';
import { redisKeys, shardCount, shardOf } from '../../../shared/redis/redis-keys.ts';
import { createLogger } from '../../../shared/runtime/logger.ts';
import { ShardLeases } from '../../../workers/ledger/shard-leases.ts';
import { OrphanSweeper } from '../../../workers/upkeep/sweep-orphans.ts';
import { admission, ageReservation, createHotAccount, readBalance } from '../../support/billing.ts';
import { useRedis } from '../../support/use-redis.ts';

const redis = useRedis(test);

/** An account with one old reservation, and the sweeper of a worker that looks after its shard. */
async function setScene(options: { isTaken?: boolean } = {}) {
  const accountId = await createHotAccount(redis(), 1_000n);
  const { requestId } = await admitOld(accountId);
  const shard = shardOf(accountId);
  const leases = new ShardLeases(redis(), randomUUID(), redisKeys.sweepLease);
  // Tests share the shards: whoever had this one is gone.
  for (let other = 0; other < shardCount; other++) await redis().del(redisKeys.sweepLease(other));
  if (options.isTaken === true) await redis().set(redisKeys.sweepLease(shard), 'another worker');
  const reservations = new ReservationStore(redis());
  const sweeper = new OrphanSweeper(reservations, leases, createLogger('test', 'silent'));
  const readReserved = async (): Promise<bigint> => (await readBalance(redis(), accountId)).reserved;
  const held = { requestId, accountId };
  return { accountId, reservations, sweeper, readReserved, held };
}

async function admitOld(accountId: string) {
  const request = admission(accountId, { fixedNano: 100n });
  await runAdmission(redis(), request);
  await ageReservation(redis(), accountId, request.requestId, 60_000);
  return request;
}

test.serial('an orphan is released at the third look in a row', async (t) => {
  const { sweeper, readReserved } = await setScene();
  await sweeper.sweep();
  await sweeper.sweep();
  t.is(await readReserved(), 100n);
  await sweeper.sweep();
  t.is(await readReserved(), 0n);
});

test.serial('one that is spoken of between two looks begins anew', async (t) => {
  const { sweeper, readReserved, reservations, held } = await setScene();
  await sweeper.sweep();
  await reservations.hold([held]);
  await sweeper.sweep();
  await sweeper.sweep();
  t.is(await readReserved(), 100n);
  await redis().del(redisKeys.heldRequests(shardOf(held.accountId)));
  await sweeper.sweep();
  await sweeper.sweep();
  t.is(await readReserved(), 100n, 'the look before it was held does not count');
  await sweeper.sweep();
  t.is(await readReserved(), 0n);
});

test.serial('a look that fails begins anew', async (t) => {
  const { sweeper, readReserved, reservations } = await setScene();
  await sweeper.sweep();
  await sweeper.sweep();
  const find = reservations.findOrphans.bind(reservations);
  reservations.findOrphans = () => Promise.reject(new Error('Redis is away'));
  await t.throwsAsync(sweeper.sweep());
  reservations.findOrphans = find;
  await sweeper.sweep();
  await sweeper.sweep();
  t.is(await readReserved(), 100n);
  await sweeper.sweep();
  t.is(await readReserved(), 0n);
});

test.serial('the shards of others are left to them', async (t) => {
  const { sweeper, readReserved } = await setScene({ isTaken: true });
  for (let i = 0; i < 4; i++) await sweeper.sweep();
  t.is(await readReserved(), 100n);
});

test.serial('two sweepers that both believe to hold the lease release once', async (t) => {
  const { sweeper, readReserved, accountId, reservations } = await setScene();
  const leases = new ShardLeases(
    redis(),
    randomUUID(),
    () => redisKeys.sweepLease(shardOf(accountId)) + '-2',
  );
  const second = new OrphanSweeper(reservations, leases, createLogger('test', 'silent'));
  for (let i = 0; i < 3; i++) await Promise.all([sweeper.sweep(), second.sweep()]);
  t.is(await readReserved(), 0n);
});
