import { randomUUID } from 'node:crypto';
import test from 'ava';
import { runAdmission } from '../../../shared/money/admit-script.ts';
import { ReservationStore } from '../../../shared/money/reservation-store.ts';
import { redisKeys, shardCount, shardOf } from '../../../shared/platform/redis/redis-keys.ts';
import { createLogger } from '../../../shared/platform/runtime/logger.ts';
import { ShardLeases } from '../../../workers/ledger/shard-leases.ts';
import { OrphanSweeper } from '../../../workers/maintenance/sweep-orphans.ts';
import { admission, ageReservation, createHotAccount, readBalance } from '../../support/billing.ts';
import { useRedis } from '../../support/use-redis.ts';

const redis = useRedis(test);

/** Creates an account with one old reservation, and the sweeper of the worker responsible for its shard. */
async function setUp(options: { isTaken?: boolean } = {}) {
  const accountId = await createHotAccount(redis(), 1_000n);
  const { requestId } = await admitOld(accountId);
  const shard = shardOf(accountId);
  const leases = new ShardLeases(redis(), randomUUID(), redisKeys.sweepLease);
  // Tests share the shards, and the previous lease holders are gone.
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

test.serial('an orphan is released at the third sweep in a row', async (t) => {
  const { sweeper, readReserved } = await setUp();
  await sweeper.sweep();
  await sweeper.sweep();
  t.is(await readReserved(), 100n);
  await sweeper.sweep();
  t.is(await readReserved(), 0n);
});

test.serial(
  'the count of sweeps restarts if a reservation gets a heartbeat between two sweeps',
  async (t) => {
    const { sweeper, readReserved, reservations, held } = await setUp();
    await sweeper.sweep();
    await reservations.sendHeartbeat([held]);
    await sweeper.sweep();
    await sweeper.sweep();
    t.is(await readReserved(), 100n);
    await redis().del(redisKeys.heldRequests(shardOf(held.accountId)));
    await sweeper.sweep();
    await sweeper.sweep();
    t.is(await readReserved(), 100n, 'the sweep before the heartbeat does not count');
    await sweeper.sweep();
    t.is(await readReserved(), 0n);
  },
);

test.serial('the count of sweeps restarts after a failed sweep', async (t) => {
  const { sweeper, readReserved, reservations } = await setUp();
  await sweeper.sweep();
  await sweeper.sweep();
  const find = reservations.findOrphans.bind(reservations);
  reservations.findOrphans = () => Promise.reject(new Error('Redis is down'));
  await t.throwsAsync(sweeper.sweep());
  reservations.findOrphans = find;
  await sweeper.sweep();
  await sweeper.sweep();
  t.is(await readReserved(), 100n);
  await sweeper.sweep();
  t.is(await readReserved(), 0n);
});

test.serial('shards leased by other workers are skipped', async (t) => {
  const { sweeper, readReserved } = await setUp({ isTaken: true });
  for (let i = 0; i < 4; i++) await sweeper.sweep();
  t.is(await readReserved(), 100n);
});

test.serial('if two sweepers both assume that they hold the lease, an orphan is released once', async (t) => {
  const { sweeper, readReserved, accountId, reservations } = await setUp();
  const leases = new ShardLeases(
    redis(),
    randomUUID(),
    () => redisKeys.sweepLease(shardOf(accountId)) + '-2',
  );
  const second = new OrphanSweeper(reservations, leases, createLogger('test', 'silent'));
  for (let i = 0; i < 3; i++) await Promise.all([sweeper.sweep(), second.sweep()]);
  t.is(await readReserved(), 0n);
});

/** Simulates that Redis's clock stepped back by an hour since the last sweep. All requests started before that. */
async function stepBack(shard: number, requestIds: readonly string[], accountId: string): Promise<void> {
  const hour = 3_600_000;
  await redis().incrby(redisKeys.orphanClock(shard), hour);
  const held = redisKeys.heldRequests(shard);
  for (const requestId of requestIds) {
    await ageReservation(redis(), accountId, requestId, -hour);
    if ((await redis().zscore(held, requestId)) !== null) await redis().zincrby(held, hour, requestId);
  }
}

test.serial(
  'after the clock stepped back, reservations of dead requests are released as soon as usual, and those of live requests are not',
  async (t) => {
    const { accountId, sweeper, reservations, held, readReserved } = await setUp();
    const shard = shardOf(accountId);
    const [living, queued] = [await admitOld(accountId), await admitOld(accountId)];
    await reservations.sendHeartbeat([held, { accountId, requestId: living.requestId }]);
    await reservations.sendHeartbeat([{ accountId, requestId: queued.requestId }], 60_000);
    await sweeper.sweep();
    await stepBack(shard, [held.requestId, living.requestId, queued.requestId], accountId);

    await sweeper.sweep();
    const now = Number((await redis().time())[0]) * 1_000;
    const until = await redis().zscore(redisKeys.heldRequests(shard), held.requestId);
    t.true(Number(until) <= now + 10_000, 'its heartbeat expires as usual');
    const [first] = (await redis().hget(redisKeys.reservations(shard), held.requestId))!.split(' ').slice(3);
    t.true(Number(first) <= now + 1_000, 'its start is not in the future');

    // Ten seconds later.
    for (const { requestId } of [held, living, queued]) {
      await ageReservation(redis(), accountId, requestId, 10_000);
      await redis().zincrby(redisKeys.heldRequests(shard), -10_000, requestId);
    }
    await reservations.sendHeartbeat([{ accountId, requestId: living.requestId }]);
    for (let i = 0; i < 3; i++) await sweeper.sweep();
    t.is(await readReserved(), 200n);
  },
);
