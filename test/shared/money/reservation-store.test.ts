import { randomUUID } from 'node:crypto';
import test from 'ava';
import { runAdmission } from '../../../shared/money/admit-script.ts';
import { ReservationStore } from '../../../shared/money/reservation-store.ts';
import { redisKeys, shardOf } from '../../../shared/platform/redis/redis-keys.ts';
import { admission, ageReservation, createHotAccount, readBalance } from '../../support/billing.ts';
import { useRedis } from '../../support/use-redis.ts';

const redis = useRedis(test);
const hour = 60 * 60 * 1_000;

async function admitOld(ageMs: number) {
  const accountId = await createHotAccount(redis(), 1_000n);
  const request = admission(accountId, { fixedNano: 100n });
  await runAdmission(redis(), request);
  const { requestId } = request;
  if (ageMs > 0) await ageReservation(redis(), accountId, requestId, ageMs);
  const shard = shardOf(accountId);
  return { accountId, requestId, shard, held: { requestId, accountId, admittedAtMs: Date.now() - ageMs } };
}

const store = (): ReservationStore => new ReservationStore(redis());

async function isOrphan({ shard, requestId }: { shard: number; requestId: string }): Promise<boolean> {
  return (await store().findOrphans(shard)).orphans.some((orphan) => orphan.requestId === requestId);
}

test('a reservation without a heartbeat becomes an orphan once it is old enough', async (t) => {
  t.false(await isOrphan(await admitOld(0)));
  t.true(await isOrphan(await admitOld(60_000)));
});

test('a request with a heartbeat is not an orphan, even if it is old', async (t) => {
  const request = await admitOld(30 * 24 * hour);
  await store().sendHeartbeat([request.held]);
  t.false(await isOrphan(request));
});

test('a later heartbeat never shortens an earlier one', async (t) => {
  const { held, shard, requestId } = await admitOld(60_000);
  await store().sendHeartbeat([held], hour);
  await store().sendHeartbeat([held]);
  await store().sendHeartbeat([held], 1);
  const untilMs = Number(await redis().zscore(redisKeys.heldRequests(shard), requestId));
  t.true(untilMs > Date.now() + hour - 60_000);
});

test('if the heartbeat resumes between check and release, the reservation is not released', async (t) => {
  const request = await admitOld(60_000);
  const orphan = (await store().findOrphans(request.shard)).orphans.find(
    (one) => one.requestId === request.requestId,
  );
  await store().sendHeartbeat([request.held]);
  t.false(await store().releaseOrphan(orphan!));
  t.like(await readBalance(redis(), request.accountId), { reserved: 100n });
});

test('an orphan is released once', async (t) => {
  const request = await admitOld(60_000);
  const orphan = (await store().findOrphans(request.shard)).orphans.find(
    (one) => one.requestId === request.requestId,
  );
  const released = await Promise.all(Array.from({ length: 5 }, () => store().releaseOrphan(orphan!)));
  t.is(released.filter(Boolean).length, 1);
  t.like(await readBalance(redis(), request.accountId), { balance: 1_000n, reserved: 0n });
});

test('releasing an orphan whose account is not in Redis does not create a partial account', async (t) => {
  const request = await admitOld(60_000);
  await redis().del(redisKeys.account(request.accountId));
  const orphan = (await store().findOrphans(request.shard)).orphans.find(
    (one) => one.requestId === request.requestId,
  );
  t.true(await store().releaseOrphan(orphan!));
  t.is(await redis().exists(redisKeys.account(request.accountId)), 0);
});

test('expired heartbeats and orphans older than an hour are deleted, and no others', async (t) => {
  const shard = 3;
  const now = Date.now();
  const [held, orphans] = [redisKeys.heldRequests(shard), redisKeys.orphans(shard)];
  const value = `${randomUUID()} 100 0 ${now}`;
  await redis().zadd(held, String(now - 60_000), 'over', String(now + 60_000), 'held');
  await redis().hset(orphans, 'old', `${value}|${now - 2 * hour}`, 'new', `${value}|${now - hour / 2}`);
  await redis().hset(orphans, 'old-claimed', `${value} claim|${now - 2 * hour}`);
  await store().forget(shard);
  // Other tests have requests in this shard, too.
  t.deepEqual(await redis().zmscore(held, 'over', 'held'), [null, String(now + 60_000)]);
  t.deepEqual(await redis().hmget(orphans, 'old', 'old-claimed', 'new'), [
    null,
    null,
    `${value}|${now - hour / 2}`,
  ]);
});

test('the check covers all reservations in a shard, even thousands of them', async (t) => {
  const accountId = await createHotAccount(redis(), 10_000n);
  const shard = shardOf(accountId);
  const oldMs = Date.now() - 60_000;
  const ids = Array.from({ length: 3_000 }, () => randomUUID());
  await redis().hset(
    redisKeys.reservations(shard),
    Object.fromEntries(ids.map((id) => [id, `${accountId} 1 0 ${oldMs} <2`])),
  );
  await store().sendHeartbeat(
    ids.slice(0, 1_000).map((requestId) => ({ requestId, accountId, admittedAtMs: oldMs })),
  );
  const found = new Set((await store().findOrphans(shard)).orphans.map((orphan) => orphan.requestId));
  t.deepEqual(
    ids.filter((id) => found.has(id)),
    ids.slice(1_000),
  );
});
