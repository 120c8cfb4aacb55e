import { randomUUID } from 'node:crypto';
import test, { type ExecutionContext } from 'ava';
import { runAdmission, type AdmissionRequest } from '../../../shared/money/admit-script.ts';
import { createIdempotencyClaim, type IdempotencyClaim } from '../../../shared/money/idempotency-claim.ts';
import { ReservationStore } from '../../../shared/money/reservation-store.ts';
import { releaseReservation, runSettlement } from '../../../shared/work/settlement/settle-script.ts';
import { redisKeys, shardOf } from '../../../shared/platform/redis/redis-keys.ts';
import {
  admission,
  ageReservation,
  createHotAccount,
  failureEvent,
  readBalance,
  readEntries,
  usageEvent,
} from '../../support/billing.ts';
import { useRedis } from '../../support/use-redis.ts';

/** An Idempotency-Key's claim, from admission to the end of the response. */

const redis = useRedis(test);
const day = 24 * 60 * 60;

const claimOf = (key: string = randomUUID(), body: unknown = { model: 'm' }): IdempotencyClaim =>
  createIdempotencyClaim(key, '/v1/x', body);

/** An account with one request that was admitted under a claim. */
async function admitClaimed(more: Partial<AdmissionRequest> = {}) {
  const id = await createHotAccount(redis(), 1_000n, { free: 1 });
  const claim = claimOf();
  const request = admission(id, { fixedNano: 100n, claim, ...more });
  const answer = await runAdmission(redis(), request);
  const { requestId } = request;
  return { id, claim, requestId, answer, key: redisKeys.claim(id, claim.keyHash) };
}

test('the admission of a request creates its claim, which expires after a day', async (t) => {
  const { answer, key, requestId, claim } = await admitClaimed();
  t.is(answer.outcome, 'ok');
  t.deepEqual(await redis().hgetall(key), { body: claim.bodyHash, id: requestId });
  const ttl = await redis().ttl(key);
  t.true(ttl > day - 60 && ttl <= day);
});

test('a second request with the same claim is attached to the first: it uses rate-limit slots, but reserves no money', async (t) => {
  const { id, claim, requestId } = await admitClaimed();
  const before = await redis().hgetall(redisKeys.account(id));
  t.like(await runAdmission(redis(), admission(id, { fixedNano: 100n, claim, slots: 3 })), {
    outcome: 'attached',
    requestId,
    rateLimit: { remaining: 999_996 },
  });
  const other = { ...claim, bodyHash: claimOf('', 'other').bodyHash };
  t.like(await runAdmission(redis(), admission(id, { fixedNano: 100n, claim: other })), {
    outcome: 'conflict',
    rateLimit: { remaining: 999_995 },
  });
  t.deepEqual(await redis().hgetall(redisKeys.account(id)), { ...before, win: '5' });
  const held = await redis().hgetall(redisKeys.reservations(shardOf(id)));
  t.is(Object.values(held).filter((value) => value.startsWith(id)).length, 1);
});

test('of many concurrent requests with the same claim, one is admitted and all others are attached to it', async (t) => {
  const id = await createHotAccount(redis(), 1_000n);
  const claim = claimOf();
  const requests = Array.from({ length: 50 }, () => admission(id, { fixedNano: 100n, claim }));
  const answers = await Promise.all(requests.map((request) => runAdmission(redis(), request)));
  const first = requests[answers.findIndex((answer) => answer.outcome === 'ok')]!;
  t.is(answers.filter((answer) => answer.outcome === 'ok').length, 1);
  t.is(
    answers.filter((answer) => answer.outcome === 'attached' && answer.requestId === first.requestId).length,
    49,
  );
  t.is((await readBalance(redis(), id)).reserved, 100n);
});

for (const { why, change, request, outcome } of [
  { why: 'without money', change: {}, request: { fixedNano: 5_000n }, outcome: 'insufficient' },
  { why: 'at its limit', change: { rpm: '0' }, request: { slots: 1 }, outcome: 'rate_limited' },
  { why: 'that is banned', change: { ban: '1' }, request: {}, outcome: 'banned' },
  { why: 'whose key was replaced', change: { key: 'other' }, request: {}, outcome: 'revoked' },
] as const) {
  test(`no claim is created for an account ${why}`, async (t) => {
    const id = await createHotAccount(redis(), 1_000n);
    if (Object.keys(change).length > 0) await redis().hset(redisKeys.account(id), change);
    // A request never needs more slots than the limit, so it is rejected only if the window is already full.
    if (outcome === 'rate_limited') {
      await redis().hset(redisKeys.account(id), 'rpm', '1', 'win', '1');
      await redis().rpush(redisKeys.rpmWindow(id), `${Math.floor(Date.now() / 1_000)}:1`);
    }
    const claim = claimOf();
    t.is((await runAdmission(redis(), admission(id, { ...request, claim }))).outcome, outcome);
    t.is(await redis().exists(redisKeys.claim(id, claim.keyHash)), 0);
  });
}

test('a banned account and a replaced key are rejected before a claim is checked', async (t) => {
  const { id, claim } = await admitClaimed();
  await redis().hset(redisKeys.account(id), 'key', 'other');
  t.is((await runAdmission(redis(), admission(id, { claim }))).outcome, 'revoked');
  await redis().hset(redisKeys.account(id), 'ban', '1');
  t.is((await runAdmission(redis(), admission(id, { claim }))).outcome, 'banned');
});

test('after a success the claim expires a day later', async (t) => {
  const { id, claim, requestId, key } = await admitClaimed();
  await redis().expire(key, 60);
  await runSettlement(redis(), usageEvent(id, requestId), 70n, { claimHash: claim.keyHash });
  t.true((await redis().ttl(key)) > day - 60);
  t.like(await runAdmission(redis(), admission(id, { claim })), { outcome: 'attached', requestId });
});

test('a failure deletes the claim, and its key may be used for another body', async (t) => {
  const { id, claim, requestId, key } = await admitClaimed();
  await runSettlement(redis(), failureEvent(id, requestId), null, { claimHash: claim.keyHash });
  t.is(await redis().exists(key), 0);
  const other = { ...claim, bodyHash: 'other' };
  t.is((await runAdmission(redis(), admission(id, { claim: other }))).outcome, 'ok');
});

test('a failure that is charged, such as a broken stream, deletes its claim, too', async (t) => {
  const { id, claim, requestId, key } = await admitClaimed();
  const { costNano } = await runSettlement(redis(), failureEvent(id, requestId), 60n, {
    claimHash: claim.keyHash,
  });
  t.is(costNano, 60n);
  t.is(await redis().exists(key), 0);
});

test('releasing a reservation deletes its claim', async (t) => {
  const { id, claim, requestId, key } = await admitClaimed();
  await releaseReservation(redis(), { accountId: id, requestId, claimHash: claim.keyHash });
  t.is(await redis().exists(key), 0);
  t.is((await readBalance(redis(), id)).reserved, 0n);
  t.deepEqual(await readEntries(redis(), id), []);
});

test('a settlement never deletes the claim of another request', async (t) => {
  const first = await admitClaimed();
  const { id, claim, key } = first;
  await runSettlement(redis(), failureEvent(id, first.requestId), null, { claimHash: claim.keyHash });
  const second = admission(id, { fixedNano: 100n, claim });
  t.is((await runAdmission(redis(), second)).outcome, 'ok');
  // All calls that may arrive late from the first request.
  await runSettlement(redis(), failureEvent(id, first.requestId), null, { claimHash: claim.keyHash });
  await runSettlement(redis(), usageEvent(id, first.requestId), 10n, { claimHash: claim.keyHash });
  await releaseReservation(redis(), { accountId: id, requestId: first.requestId, claimHash: claim.keyHash });
  t.is(await redis().hget(key, 'id'), second.requestId);
  t.is((await readBalance(redis(), id)).reserved, 100n);
  await runSettlement(redis(), usageEvent(id, second.requestId), 10n, { claimHash: claim.keyHash });
  t.is(await redis().hget(key, 'id'), second.requestId);
});

/** Admits a request with a claim, and releases its reservation as an orphan. */
async function orphanClaimed(t: ExecutionContext) {
  const claimed = await admitClaimed();
  const { id, claim, requestId, key } = claimed;
  const store = new ReservationStore(redis());
  await ageReservation(redis(), id, requestId, 60_000);
  const { orphans } = await store.findOrphans(shardOf(id));
  const claimedOrphan = orphans.find((orphan) => orphan.requestId === requestId);
  t.like(claimedOrphan, { accountId: id, costNano: 100n, free: false, claimHash: claim.keyHash });
  t.true(await store.releaseOrphan(claimedOrphan!));
  t.is(await redis().exists(key), 0);
  return claimed;
}

test("releasing an orphan deletes its claim; if the request has been sent again, the orphan's late settlement charges nothing", async (t) => {
  const { id, claim, requestId, key } = await orphanClaimed(t);
  const second = admission(id, { fixedNano: 100n, claim });
  t.is((await runAdmission(redis(), second)).outcome, 'ok');
  const late = await runSettlement(redis(), usageEvent(id, requestId), 70n, { claimHash: claim.keyHash });
  t.is(late.outcome, 'absent');
  t.is(await redis().hget(key, 'id'), second.requestId);
  t.like(await readBalance(redis(), id), { balance: 1_000n, reserved: 100n });
});

test('an orphan that was not sent again is charged once when it is settled late, and its claim refers to its response', async (t) => {
  const { id, claim, requestId, key } = await orphanClaimed(t);
  const settle = () => runSettlement(redis(), usageEvent(id, requestId), 70n, { claimHash: claim.keyHash });
  t.like(await settle(), { outcome: 'settled', costNano: 70n });
  t.is((await settle()).outcome, 'absent');
  t.like(await readBalance(redis(), id), { balance: 930n, reserved: 0n });
  t.deepEqual(await redis().hgetall(key), { body: claim.bodyHash, id: requestId });
  t.true((await redis().ttl(key)) > day - 60);
  t.like(await runAdmission(redis(), admission(id, { fixedNano: 100n, claim })), {
    outcome: 'attached',
    requestId,
  });
});

test('if the stream of an orphan broke, its late settlement is charged, too, and its key can be used again', async (t) => {
  const { id, claim, requestId, key } = await orphanClaimed(t);
  const late = await runSettlement(redis(), failureEvent(id, requestId), 60n, { claimHash: claim.keyHash });
  t.is(late.costNano, 60n);
  t.is(await redis().exists(key), 0);
  t.is((await readBalance(redis(), id)).balance, 940n);
});

test('if a free request with a claim fails, the free request is returned to the account', async (t) => {
  const { id, claim, requestId, answer } = await admitClaimed({ freeAllowed: true });
  t.true(answer.outcome === 'ok' && answer.free);
  await runSettlement(redis(), failureEvent(id, requestId), null, { claimHash: claim.keyHash });
  t.like(await readBalance(redis(), id), { free: 1, freeHeld: 0 });
});

test('claims differ by key, path and body, but not between bodies that parse to the same value', (t) => {
  const body = { model: 'm', input: 'a' };
  const claim = createIdempotencyClaim('k', '/v1/embeddings', body);
  t.deepEqual(
    createIdempotencyClaim('k', '/v1/embeddings', JSON.parse(JSON.stringify(body, null, 2))),
    claim,
  );
  t.not(createIdempotencyClaim('k', '/v1/chat/completions', body).bodyHash, claim.bodyHash);
  t.not(createIdempotencyClaim('k', '/v1/embeddings', { ...body, input: 'b' }).bodyHash, claim.bodyHash);
  t.not(createIdempotencyClaim('K', '/v1/embeddings', body).keyHash, claim.keyHash);
});
