import { randomUUID } from 'node:crypto';
import test from 'ava';
import { runAdmission, type AdmissionRequest } from '../../../shared/money/admit-script.ts';
import { runRefill } from '../../../shared/accounts/refill-script.ts';
import { releaseReservation, runSettlement } from '../../../shared/work/settlement/settle-script.ts';
import { createRefillEvent, type LedgerEntry } from '../../../shared/ledger/usage-event.ts';
import {
  createRedis,
  waitUntilReady,
  type RedisClient,
} from '../../../shared/platform/redis/redis-client.ts';
import { redisKeys, shardOf } from '../../../shared/platform/redis/redis-keys.ts';
import { createLogger } from '../../../shared/platform/runtime/logger.ts';
import {
  admission,
  createHotAccount,
  readBalance as readHotBalance,
  readEntries as readHotEntries,
  usageEvent,
  type HotBalance,
} from '../../support/billing.ts';
import { openTestRedis, type OpenedRedis } from '../../support/stores.ts';

let server: OpenedRedis;
let redis: RedisClient;

test.before(async () => {
  server = await openTestRedis();
  redis = createRedis(server.url, 'commands', createLogger('test', 'silent'));
  await waitUntilReady(redis);
});
test.after.always(async () => {
  redis.disconnect();
  await server.close();
});

const createAccount = (balanceNano: bigint, options: { free?: number; rpm?: number } = {}): Promise<string> =>
  createHotAccount(redis, balanceNano, options);
const readBalance = (id: string): Promise<HotBalance> => readHotBalance(redis, id);
const readEntries = (id: string): Promise<LedgerEntry[]> => readHotEntries(redis, id);

test('if the balance covers ten of 200 simultaneous requests, ten are admitted, and the balance ends at zero with nothing reserved', async (t) => {
  const id = await createAccount(1_000n);
  const requests = Array.from({ length: 200 }, () => admission(id, { fixedNano: 100n }));
  const answers = await Promise.all(requests.map((request) => runAdmission(redis, request)));
  const admitted = requests.filter((_, i) => answers[i]!.outcome === 'ok');
  t.is(admitted.length, 10);
  t.is(answers.filter((answer) => answer.outcome === 'insufficient').length, 190);
  await Promise.all(admitted.map(({ requestId }) => runSettlement(redis, usageEvent(id, requestId), 100n)));
  t.deepEqual(await readBalance(id), { balance: 0n, reserved: 0n, free: 0, freeHeld: 0 });
  const held = await redis.hvals(redisKeys.reservations(shardOf(id)));
  t.deepEqual(
    held.filter((value) => value.startsWith(id)),
    [],
  );
});

test('a repeated settlement charges once and writes one entry', async (t) => {
  const id = await createAccount(1_000n);
  const request = admission(id, { fixedNano: 100n });
  await runAdmission(redis, request);
  const settlements = await Promise.all(
    Array.from({ length: 20 }, () => runSettlement(redis, usageEvent(id, request.requestId), 70n)),
  );
  t.is(settlements.filter((one) => one.outcome === 'settled').length, 1);
  t.is((await readBalance(id)).balance, 930n);
  const entries = await readEntries(id);
  t.is(entries.length, 1);
  t.like(entries[0], { kind: 'charge', costNano: 70n, shortfallNano: 0n, free: false });
});

test('a cost above the reservation is debited from the unreserved balance, and the remainder is a shortfall', async (t) => {
  const id = await createAccount(1_000n);
  const first = admission(id, { fixedNano: 500n });
  const second = admission(id, { fixedNano: 400n });
  await runAdmission(redis, first);
  await runAdmission(redis, second);
  const settlement = await runSettlement(redis, usageEvent(id, first.requestId), 5_000n);
  t.is(settlement.costNano, 600n);
  t.like((await readEntries(id))[0], { costNano: 600n, shortfallNano: 4_400n });
  t.is((await runSettlement(redis, usageEvent(id, second.requestId), 400n)).costNano, 400n);
  t.is((await readBalance(id)).balance, 0n);
});

test('a free request is used first, and is returned if the request failed', async (t) => {
  const id = await createAccount(1_000n, { free: 1 });
  const request = admission(id, { fixedNano: 100n, freeAllowed: true });
  t.like(await runAdmission(redis, request), { outcome: 'ok', free: true, reservedNano: 0n });
  t.like(await runAdmission(redis, admission(id, { fixedNano: 100n, freeAllowed: true })), {
    outcome: 'ok',
    free: false,
    reservedNano: 100n,
  });
  await runSettlement(redis, usageEvent(id, request.requestId), null);
  t.like(await readBalance(id), { balance: 1_000n, free: 1, freeHeld: 0 });
  const again = admission(id, { fixedNano: 100n, freeAllowed: true });
  await runAdmission(redis, again);
  const used = await runSettlement(redis, usageEvent(id, again.requestId), 70n);
  t.deepEqual({ ...used }, { outcome: 'settled', costNano: 0n, free: true });
  t.like(await readBalance(id), { balance: 1_000n, free: 0, freeHeld: 0 });
});

test('a released reservation leaves no entry', async (t) => {
  const id = await createAccount(1_000n);
  const request = admission(id, { fixedNano: 100n });
  await runAdmission(redis, request);
  t.is((await readBalance(id)).reserved, 100n);
  await releaseReservation(redis, { accountId: id, requestId: request.requestId, claimHash: null });
  t.deepEqual(await readBalance(id), { balance: 1_000n, reserved: 0n, free: 0, freeHeld: 0 });
  t.deepEqual(await readEntries(id), []);
});

test('max tokens are lowered until the request costs at most the balance, or at most a part of it if no maximum is set', async (t) => {
  const id = await createAccount(1_000_000n);
  const open = admission(id, {
    fixedNano: 100_000n,
    nanoPerUnit: 100n,
    requestedUnits: 50_000,
    minUnits: 16,
    sharePermille: 500,
  });
  t.like(await runAdmission(redis, open), { outcome: 'ok', units: 4_000, reservedNano: 500_000n });
  const withMaximum = admission(id, { nanoPerUnit: 100n, requestedUnits: 50_000, minUnits: 16 });
  t.like(await runAdmission(redis, withMaximum), { outcome: 'ok', units: 5_000, reservedNano: 500_000n });
  const late = admission(id, { nanoPerUnit: 100n, requestedUnits: 50_000, minUnits: 16 });
  t.like(await runAdmission(redis, late), { outcome: 'insufficient', neededNano: 1_600n, spendableNano: 0n });
});

test('an item is pushed in the step that admits its request, only if the request gets all units it asks for and the list is not full', async (t) => {
  const list = `test-list:${randomUUID()}`;
  const push = (item: string, bound = 10) => ({ keys: [list, `${list}:pushed`], bound, item }) as const;
  const id = await createAccount(1_000n, { rpm: 6 });
  const ask = (more: Partial<AdmissionRequest>): AdmissionRequest =>
    admission(id, { fixedNano: 100n, nanoPerUnit: 10n, requestedUnits: 10, minUnits: 1, ...more });
  t.like(await runAdmission(redis, ask({}), push('first')), { outcome: 'ok', ticket: 1 });
  t.like(await runAdmission(redis, ask({ requestedUnits: 100 }), push('fewer units')), {
    outcome: 'ok',
    units: 70,
    ticket: null,
  });
  t.like(await runAdmission(redis, ask({}), push('insufficient')), { outcome: 'insufficient' });
  t.like(await runAdmission(redis, ask({ keyHash: 'other' }), push('revoked')), { outcome: 'revoked' });

  const rich = await createAccount(100_000n, { rpm: 3 });
  const pay = () => admission(rich, { fixedNano: 100n });
  t.like(await runAdmission(redis, pay(), push('second')), { outcome: 'ok', ticket: 2 });
  t.like(await runAdmission(redis, pay(), push('list full', 2)), { outcome: 'ok', ticket: null });
  t.like(await runAdmission(redis, pay()), { outcome: 'ok', ticket: null });
  t.like(await runAdmission(redis, pay(), push('rate limited')), { outcome: 'rate_limited' });
  t.deepEqual(await redis.lrange(list, 0, -1), ['first', 'second']);
  t.is((await readBalance(rich)).reserved, 300n, 'a request whose item is not pushed is admitted too');
  const claim = { keyHash: 'key', bodyHash: 'body' };
  await t.throwsAsync(runAdmission(redis, { ...pay(), claim }, push('stored')), { instanceOf: TypeError });
});

test('the rate window admits exactly the limit, and reports when the next slot is available', async (t) => {
  const id = await createAccount(0n, { rpm: 5 });
  const answers = await Promise.all(Array.from({ length: 9 }, () => runAdmission(redis, admission(id))));
  t.is(answers.filter((answer) => answer.outcome === 'ok').length, 5);
  const refused = answers.find((answer) => answer.outcome === 'rate_limited');
  t.true(refused?.outcome === 'rate_limited' && refused.retryAfterMs > 0 && refused.retryAfterMs <= 60_000);
  // Buckets older than a minute are outside the window.
  const [second] = await redis.time();
  await redis.del(redisKeys.rpmWindow(id));
  await redis.rpush(redisKeys.rpmWindow(id), `${Number(second) - 61}:4`, `${Number(second) - 30}:1`);
  t.like(await runAdmission(redis, admission(id, { slots: 4 })), {
    outcome: 'ok',
    rateLimit: { remaining: 0 },
  });
  t.like(await runAdmission(redis, admission(id)), { outcome: 'rate_limited' });
});

test('a banned account, a replaced key and an unknown account are rejected by the script itself', async (t) => {
  const id = await createAccount(1_000n);
  t.is((await runAdmission(redis, admission(id, { keyHash: 'old' }))).outcome, 'revoked');
  await redis.hset(redisKeys.account(id), 'ban', '1');
  t.is((await runAdmission(redis, admission(id))).outcome, 'banned');
  t.is((await runAdmission(redis, admission(randomUUID()))).outcome, 'unknown');
});

test('a refill is credited once per id, never debits more than the unreserved balance, and never raises the balance above the cap', async (t) => {
  const id = await createAccount(1_000n);
  const refill = (refillId: string, amountNano: bigint) =>
    runRefill(redis, {
      amountNano,
      freeRequests: 0,
      event: createRefillEvent(refillId, id, 'test'),
    });
  const credited = await Promise.all(Array.from({ length: 20 }, () => refill('once', 50n)));
  t.is(credited.filter(Boolean).length, 1);
  await runAdmission(redis, admission(id, { fixedNano: 1_000n }));
  await refill('back', -5_000n);
  t.deepEqual(await readBalance(id), { balance: 1_000n, reserved: 1_000n, free: 0, freeHeld: 0 });
  await t.throwsAsync(refill('much', 9_000_000_000_000_000n), { message: /cannot exceed 9 000 000/ });
  t.deepEqual(
    (await readEntries(id)).map((entry) => entry.kind === 'refill' && entry.amountNano),
    [50n, -50n],
  );
});

test('a request costs at most twice its reservation even if the balance allows more, and the remainder is a shortfall', async (t) => {
  const id = await createAccount(1_000_000n);
  for (const [usageCost, cost] of [
    [1_999n, 1_999n],
    [2_000n, 2_000n],
    [990_000n, 2_000n],
  ] as const) {
    const request = admission(id, { fixedNano: 1_000n });
    await runAdmission(redis, request);
    const settled = await runSettlement(redis, usageEvent(id, request.requestId), usageCost);
    t.is(settled.costNano, cost);
    t.like((await readEntries(id)).at(-1), { costNano: cost, shortfallNano: usageCost - cost });
  }
  t.like(await readBalance(id), { balance: 1_000_000n - 5_999n, reserved: 0n });
});

test('an open-ended request costs at most its reservation for output tokens plus twice its reservation for the rest', async (t) => {
  const id = await createAccount(1_000_000n);
  const request = admission(id, {
    fixedNano: 1_000n,
    nanoPerUnit: 10n,
    requestedUnits: 100_000,
    sharePermille: 500,
  });
  t.like(await runAdmission(redis, request), { reservedNano: 500_000n, units: 49_900 });
  const settled = await runSettlement(redis, usageEvent(id, request.requestId), 990_000n);
  t.is(settled.costNano, 501_000n);
  t.like((await readEntries(id)).at(-1), { costNano: 501_000n, shortfallNano: 489_000n });
  t.like(await readBalance(id), { balance: 499_000n, reserved: 0n });
});

test('large amounts are exact to the nano-rouble', async (t) => {
  const id = await createAccount(8_999_999_999_999_999n);
  const request = admission(id, { fixedNano: 8_999_999_999_999_998n });
  t.like(await runAdmission(redis, request), { outcome: 'ok', reservedNano: 8_999_999_999_999_998n });
  t.is((await runAdmission(redis, admission(id, { fixedNano: 2n }))).outcome, 'insufficient');
  await runSettlement(redis, usageEvent(id, request.requestId), 8_999_999_999_999_997n);
  t.is((await readBalance(id)).balance, 2n);
});

test('settlements in one script execution are independent: a failure in one does not affect the others', async (t) => {
  const id = await createAccount(1_000_000n);
  const requests = Array.from({ length: 150 }, () => admission(id, { fixedNano: 1_000n }));
  await Promise.all(requests.map((request) => runAdmission(redis, request)));
  const brokenId = requests[70]!.requestId;
  const reservations = redisKeys.reservations(shardOf(id));
  const reservation = await redis.hget(reservations, brokenId);
  await redis.hset(reservations, brokenId, 'no reservation');
  const outcomes = await Promise.allSettled(
    requests.map(({ requestId }) => runSettlement(redis, usageEvent(id, requestId), 900n)),
  );
  t.deepEqual(
    outcomes.flatMap(({ status }, i) => (status === 'rejected' ? [i] : [])),
    [70],
  );
  t.deepEqual(await readBalance(id), {
    balance: 1_000_000n - 149n * 900n,
    reserved: 1_000n,
    free: 0,
    freeHeld: 0,
  });
  await redis.hset(reservations, brokenId, reservation!);
  t.is((await runSettlement(redis, usageEvent(id, brokenId), 900n)).outcome, 'settled');
  const ids = (await readEntries(id)).flatMap((entry) =>
    entry.kind === 'charge' ? [entry.event.requestId] : [],
  );
  t.is(new Set(ids).size, 150);
});

test('every entry starts with its kind and its account, which the restore and the refill log rely on', async (t) => {
  const id = await createAccount(1_000n);
  const request = admission(id, { fixedNano: 100n });
  await runAdmission(redis, request);
  await runSettlement(redis, usageEvent(id, request.requestId), 100n);
  for (const code of [null, 'CODE']) {
    const event = createRefillEvent(randomUUID(), id, code === null ? 'test' : 'code', code);
    await runRefill(redis, { amountNano: 1n, freeRequests: 0, event });
  }
  const entries = (await redis.xrange(redisKeys.ledgerStream(shardOf(id)), '-', '+'))
    .map(([, fields]) => fields)
    .filter((fields) => fields.includes(id));
  t.deepEqual(
    entries.map((fields) => fields.slice(0, 4)),
    ['charge', 'refill', 'refill'].map((kind) => ['kind', kind, 'account', id]),
  );
});
