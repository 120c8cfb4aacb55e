import test from 'ava';
import { runAdmission, type AdmissionRequest } from '../../../../shared/money/admit-script.ts';
import { ReservationStore } from '../../../../shared/money/reservation-store.ts';
import { releaseReservation, runSettlement } from '../../../../shared/work/settlement/settle-script.ts';
import { redisKeys, shardOf } from '../../../../shared/platform/redis/redis-keys.ts';
import {
  admission,
  ageReservation,
  createHotAccount,
  failureEvent,
  readBalance,
  readEntries,
  usageEvent,
} from '../../../support/billing.ts';
import { useRedis } from '../../../support/use-redis.ts';

/** Settlements whose reservation or account is no longer in Redis. */

const redis = useRedis(test);

/** Admits a request whose reservation is then released as an orphan. */
async function createOrphan(id: string, more: Partial<AdmissionRequest>): Promise<string> {
  const request = admission(id, more);
  const { outcome } = await runAdmission(redis(), request);
  if (outcome !== 'ok') throw new Error(`the request was not admitted: ${outcome}`);
  const store = new ReservationStore(redis());
  await ageReservation(redis(), id, request.requestId, 60_000);
  for (const found of (await store.findOrphans(shardOf(id))).orphans)
    if (found.requestId === request.requestId) await store.releaseOrphan(found);
  return request.requestId;
}

test('an orphan that is settled late is charged once, exactly', async (t) => {
  const id = await createHotAccount(redis(), 1_000n);
  const requestId = await createOrphan(id, { fixedNano: 100n });
  t.deepEqual(await readBalance(redis(), id), { balance: 1_000n, reserved: 0n, free: 0, freeHeld: 0 });
  const settlements = await Promise.all(
    Array.from({ length: 10 }, () => runSettlement(redis(), usageEvent(id, requestId), 70n)),
  );
  t.is(settlements.filter((one) => one.outcome === 'settled').length, 1);
  t.deepEqual(await readBalance(redis(), id), { balance: 930n, reserved: 0n, free: 0, freeHeld: 0 });
  const entries = await readEntries(redis(), id);
  t.is(entries.length, 1);
  t.like(entries[0], { kind: 'charge', costNano: 70n, shortfallNano: 0n, free: false, ordinal: 1 });
});

test('a late settlement debits the spendable balance, and the remainder is a shortfall', async (t) => {
  const id = await createHotAccount(redis(), 1_000n);
  const requestId = await createOrphan(id, { fixedNano: 600n });
  const other = admission(id, { fixedNano: 900n });
  t.is((await runAdmission(redis(), other)).outcome, 'ok');
  const late = await runSettlement(redis(), usageEvent(id, requestId), 600n);
  t.is(late.costNano, 100n);
  t.like((await readEntries(redis(), id))[0], { costNano: 100n, shortfallNano: 500n });
  t.like(await readBalance(redis(), id), { balance: 900n, reserved: 900n });
  t.is((await runSettlement(redis(), usageEvent(id, other.requestId), 900n)).costNano, 900n);
  t.like(await readBalance(redis(), id), { balance: 0n, reserved: 0n });
});

test('a late settlement charges at most twice the former reservation', async (t) => {
  const id = await createHotAccount(redis(), 1_000n);
  const requestId = await createOrphan(id, { fixedNano: 100n });
  t.is((await runSettlement(redis(), usageEvent(id, requestId), 900n)).costNano, 200n);
  t.like((await readEntries(redis(), id))[0], { costNano: 200n, shortfallNano: 700n });
  t.like(await readBalance(redis(), id), { balance: 800n, reserved: 0n });
});

test('a late settlement of an open-ended request has the usual maximum', async (t) => {
  const openEnded = { fixedNano: 100n, nanoPerUnit: 1n, requestedUnits: 400, sharePermille: 500 };
  const id = await createHotAccount(redis(), 1_000n);
  const requestId = await createOrphan(id, openEnded);
  t.is((await runSettlement(redis(), usageEvent(id, requestId), 900n)).costNano, 600n);
});

test('if the account has no spendable balance, the whole late settlement is a shortfall', async (t) => {
  const id = await createHotAccount(redis(), 100n);
  const requestId = await createOrphan(id, { fixedNano: 100n });
  await runAdmission(redis(), admission(id, { fixedNano: 100n }));
  t.is((await runSettlement(redis(), usageEvent(id, requestId), 80n)).costNano, 0n);
  t.like((await readEntries(redis(), id))[0], { costNano: 0n, shortfallNano: 80n, ordinal: 1 });
});

test('a late settlement of a free request uses a remaining free request, otherwise money', async (t) => {
  const id = await createHotAccount(redis(), 1_000n, { free: 2 });
  const one = await createOrphan(id, { fixedNano: 100n, freeAllowed: true });
  t.like(await readBalance(redis(), id), { free: 2, freeHeld: 0 });
  t.true((await runSettlement(redis(), usageEvent(id, one), 70n)).free);
  t.like(await readBalance(redis(), id), { balance: 1_000n, free: 1, freeHeld: 0 });
  const two = await createOrphan(id, { fixedNano: 100n, freeAllowed: true });
  const holder = admission(id, { fixedNano: 100n, freeAllowed: true });
  t.like(await runAdmission(redis(), holder), { outcome: 'ok', free: true });
  t.deepEqual(await runSettlement(redis(), usageEvent(id, two), 70n), {
    outcome: 'settled',
    costNano: 70n,
    free: false,
  });
  t.like(await readBalance(redis(), id), { balance: 930n, free: 1, freeHeld: 1 });
  t.true((await runSettlement(redis(), usageEvent(id, holder.requestId), 70n)).free);
  t.like(await readBalance(redis(), id), { balance: 930n, free: 0, freeHeld: 0 });
});

test('a late failure has a ledger entry, but uses neither money nor a free request', async (t) => {
  const id = await createHotAccount(redis(), 1_000n, { free: 1 });
  const requestId = await createOrphan(id, { fixedNano: 100n, freeAllowed: true });
  t.is((await runSettlement(redis(), failureEvent(id, requestId), null)).outcome, 'settled');
  t.like(await readBalance(redis(), id), { balance: 1_000n, reserved: 0n, free: 1, freeHeld: 0 });
  t.like((await readEntries(redis(), id))[0], { costNano: 0n, free: false, ordinal: 1 });
});

test('releasing an orphan again changes nothing', async (t) => {
  const id = await createHotAccount(redis(), 1_000n);
  const requestId = await createOrphan(id, { fixedNano: 100n });
  const released = await releaseReservation(redis(), { accountId: id, requestId, claimHash: null });
  t.is(released.outcome, 'absent');
  t.like(await readBalance(redis(), id), { balance: 1_000n, reserved: 0n });
});

test('if the account is not in Redis, a settlement changes nothing', async (t) => {
  const id = await createHotAccount(redis(), 1_000n);
  const [request, late] = [admission(id, { fixedNano: 100n }), await createOrphan(id, { fixedNano: 50n })];
  await runAdmission(redis(), request);
  const shard = shardOf(id);
  await redis().del(redisKeys.account(id));
  const read = async () => ({
    reservation: await redis().hget(redisKeys.reservations(shard), request.requestId),
    orphan: await redis().hget(redisKeys.orphans(shard), late),
    entries: await readEntries(redis(), id),
    minutes: await redis().exists(redisKeys.recentMinutes(id)),
    account: await redis().exists(redisKeys.account(id)),
  });
  const before = await read();
  t.truthy(before.reservation);
  t.truthy(before.orphan);
  for (const requestId of [request.requestId, late])
    t.is((await runSettlement(redis(), usageEvent(id, requestId), 10n)).outcome, 'unknown');
  t.deepEqual(await read(), before);
});

test('if the account is not in Redis, a release still deletes the reservation', async (t) => {
  const id = await createHotAccount(redis(), 1_000n);
  const request = admission(id, { fixedNano: 100n });
  await runAdmission(redis(), request);
  await redis().del(redisKeys.account(id));
  await releaseReservation(redis(), { accountId: id, requestId: request.requestId, claimHash: null });
  t.is(await redis().hexists(redisKeys.reservations(shardOf(id)), request.requestId), 0);
  t.is(await redis().exists(redisKeys.account(id)), 0, 'no partial account is left behind');
});
