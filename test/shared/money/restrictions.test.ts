import { readFileSync } from 'node:fs';
import test from 'ava';
import type { SettingsChange } from '../../../shared/accounts/account-settings.ts';
import {
  budgetPeriods,
  endOfPeriod,
  startOfPeriod,
  toDay,
  type Budget,
  type BudgetPeriod,
} from '../../../shared/accounts/budget-periods.ts';
import { writeAddress } from '../../../shared/accounts/address-ranges.ts';
import { changeAccount } from '../../../shared/accounts/change-account.ts';
import { HotAccountStore, type HotAccount } from '../../../shared/accounts/hot-account-store.ts';
import { toLedgerDocument } from '../../../shared/ledger/ledger-store.ts';
import { runAdmission, type AdmissionRequest } from '../../../shared/money/admit-script.ts';
import { runPreAdmission } from '../../../shared/money/pre-admit-script.ts';
import { ReservationStore } from '../../../shared/money/reservation-store.ts';
import { releaseReservation, runSettlement } from '../../../shared/work/settlement/settle-script.ts';
import { redisKeys, shardOf } from '../../../shared/platform/redis/redis-keys.ts';
import { flushAll } from '../../support/all-of-redis.ts';
import { admission, ageReservation, readEntries, usageEvent } from '../../support/billing.ts';
import { openLedgerServices, type LedgerServices } from '../../support/ledger-services.ts';

let services: LedgerServices;

test.before(async () => {
  services = await openLedgerServices();
});
test.after.always(async () => {
  await services.close();
});

interface TestAccount {
  readonly id: string;
  readonly keyHash: string;
}

async function createAccount(
  settings: SettingsChange,
  options: { balanceNano?: bigint; freeRequests?: number } = {},
): Promise<TestAccount> {
  const account = await services.createAccount({ balanceNano: 1_000_000n, ...options });
  await changeAccount(services, account.id, settings);
  return account;
}

const request = ({ id, keyHash }: TestAccount, more: Partial<AdmissionRequest> = {}): AdmissionRequest =>
  admission(id, { keyHash, fixedNano: 100n, address: writeAddress('192.0.2.1'), model: 'm', ...more });

const admit = (account: TestAccount, more: Partial<AdmissionRequest> = {}) =>
  runAdmission(services.redis, request(account, more));

/** Settles a request that was admitted now. */
const settle = async ({ id }: TestAccount, requestId: string, costNano: bigint | null) =>
  await runSettlement(services.redis, usageEvent(id, requestId, { at: Date.now() }), costNano);

async function charge(account: TestAccount, costNano: bigint): Promise<void> {
  const admitted = request(account, { fixedNano: costNano });
  await runAdmission(services.redis, admitted);
  await settle(account, admitted.requestId, costNano);
}

async function readBudget({ id }: TestAccount, name: 'budget' | 'ownerBudget' = 'budget') {
  const { spentNano, reservedNano } = (await services.hotAccounts.get(id)).restrictions[name]!;
  return { spentNano, reservedNano };
}

const daily = (amountNano: bigint) => ({ amountNano, period: 'daily' as const });

test('periods of Lua and TypeScript are the same, for every day of 140 years', async (t) => {
  const functions = readFileSync('shared/money/budgets.lua', 'utf8');
  const script = `${functions}
    local starts = {}
    for day = 0, 51000 do
      starts[#starts + 1] = startOfPeriod('w', day)
      starts[#starts + 1] = startOfPeriod('m', day)
    end
    return starts`;
  const starts = (await services.redis.eval(script, 0)) as number[];
  const wrong: number[] = [];
  for (let day = 0; day <= 51_000; day++) {
    const isSame =
      starts[2 * day] === startOfPeriod('weekly', day) &&
      starts[2 * day + 1] === startOfPeriod('monthly', day);
    if (!isSame) wrong.push(day);
  }
  t.deepEqual(wrong, []);
});

test('periods begin at 00:00 UTC, weeks on Monday, months on the first', (t) => {
  const day = toDay(Date.parse('2026-12-31T23:59:59Z'));
  const describe = (period: BudgetPeriod): [string, string] => {
    const start = startOfPeriod(period, day);
    return [new Date(start * 86_400_000).toISOString(), endOfPeriod(period, start).toISOString()];
  };
  t.deepEqual(budgetPeriods.map(describe), [
    ['2026-12-31T00:00:00.000Z', '2027-01-01T00:00:00.000Z'],
    ['2026-12-28T00:00:00.000Z', '2027-01-04T00:00:00.000Z'],
    ['2026-12-01T00:00:00.000Z', '2027-01-01T00:00:00.000Z'],
  ]);
});

test('of 50 parallel requests, as many are admitted as the budget pays for, and it is used up exactly', async (t) => {
  const account = await createAccount({ budget: daily(1_000n) });
  const requests = Array.from({ length: 50 }, () => request(account, { fixedNano: 60n }));
  const answers = await Promise.all(requests.map((one) => runAdmission(services.redis, one)));
  const admitted = requests.filter((_, i) => answers[i]!.outcome === 'ok');
  t.is(admitted.length, 16);
  t.is(answers.filter(({ outcome }) => outcome === 'over_budget').length, 34);
  t.deepEqual(await readBudget(account), { spentNano: 0n, reservedNano: 960n });
  await Promise.all(admitted.map(({ requestId }) => settle(account, requestId, 50n)));
  t.deepEqual(await readBudget(account), { spentNano: 800n, reservedNano: 0n });
  const last = request(account, { fixedNano: 200n });
  t.is((await runAdmission(services.redis, last)).outcome, 'ok');
  await settle(account, last.requestId, 200n);
  t.deepEqual(await readBudget(account), { spentNano: 1_000n, reservedNano: 0n });
  t.like(await admit(account, { fixedNano: 1n }), {
    outcome: 'over_budget',
    neededNano: 1n,
    budget: { amountNano: 1_000n, leftNano: 0n, period: 'daily', isOwners: false },
  });
});

test('units shrink to what is left of the budget, and the reply tells what remains', async (t) => {
  const account = await createAccount({ budget: { amountNano: 1_000n, period: 'monthly' } });
  const answer = await admit(account, { nanoPerUnit: 7n, requestedUnits: 500, minUnits: 1 });
  t.like(answer, {
    outcome: 'ok',
    reservedNano: 996n,
    units: 128,
    budget: { leftNano: 4n, amountNano: 1_000n },
  });
});

test('a cost above the reservation takes no more than is left of the budget', async (t) => {
  const account = await createAccount({ budget: daily(150n) });
  const one = request(account);
  await runAdmission(services.redis, one);
  t.is((await settle(account, one.requestId, 190n)).costNano, 150n);
  t.deepEqual(await readBudget(account), { spentNano: 150n, reservedNano: 0n });
});

test('a request may cost what the balance has if no budget is near its end, and the balance is told first', async (t) => {
  const account = await createAccount({ budget: daily(50n) }, { balanceNano: 80n });
  t.is((await admit(account, { fixedNano: 60n })).outcome, 'over_budget');
  t.is((await admit(account, { fixedNano: 90n })).outcome, 'insufficient');
});

test('free requests and models without a price cost no budget', async (t) => {
  const account = await createAccount({ budget: daily(0n) }, { freeRequests: 1 });
  const free = request(account, { freeAllowed: true });
  t.like(await runAdmission(services.redis, free), { outcome: 'ok', free: true });
  t.true((await settle(account, free.requestId, 100n)).free);
  t.is((await admit(account, { fixedNano: 0n })).outcome, 'ok');
  t.is((await admit(account, { fixedNano: 1n })).outcome, 'over_budget');
  t.deepEqual(await readBudget(account), { spentNano: 0n, reservedNano: 0n });
});

test('of the budgets of operator and owner, both apply', async (t) => {
  const account = await createAccount({
    budget: daily(500n),
    ownerBudget: { amountNano: 200n, period: 'weekly' },
  });
  await charge(account, 150n);
  t.like(await admit(account), { outcome: 'over_budget', budget: { isOwners: true, leftNano: 50n } });
  await changeAccount(services, account.id, { ownerBudget: { amountNano: 10_000n, period: 'weekly' } });
  t.deepEqual(await readBudget(account, 'ownerBudget'), { spentNano: 150n, reservedNano: 0n });
  await charge(account, 300n);
  t.like(await admit(account), { outcome: 'over_budget', budget: { isOwners: false, leftNano: 50n } });
  await changeAccount(services, account.id, { budget: null });
  t.is((await admit(account)).outcome, 'ok');
});

/** Sets the day from which the sums of a budget count, as if the period had begun then. */
async function moveBudget({ id }: TestAccount, days: number): Promise<void> {
  const key = redisKeys.account(id);
  const words = (await services.redis.hget(key, 'bud'))!.split(' ');
  words[2] = String(Number(words[2]) + days);
  await services.redis.hset(key, 'bud', words.join(' '));
}

test('in a new period the sums begin at zero, and requests of the last period do not change them', async (t) => {
  const account = await createAccount({ budget: daily(300n) });
  await charge(account, 200n);
  const old = request(account);
  await runAdmission(services.redis, old);
  const released = request(account, { fixedNano: 0n, nanoPerUnit: 0n });
  await runAdmission(services.redis, released);
  t.is((await admit(account)).outcome, 'over_budget');
  // As if all that had happened yesterday.
  await moveBudget(account, -1);
  await ageReservation(services.redis, account.id, old.requestId, 86_400_000);
  t.deepEqual(await readBudget(account), { spentNano: 0n, reservedNano: 0n });
  const today = request(account);
  t.is((await runAdmission(services.redis, today)).outcome, 'ok');
  t.is((await settle(account, old.requestId, 70n)).costNano, 70n);
  t.deepEqual(await readBudget(account), { spentNano: 0n, reservedNano: 100n });
  await settle(account, today.requestId, 40n);
  t.deepEqual(await readBudget(account), { spentNano: 40n, reservedNano: 0n });
});

for (const hasMonthly of [false, true])
  test(`a cost above the reservation takes nothing more from a budget whose period has ended${hasMonthly ? ', though another goes on' : ''}`, async (t) => {
    const account = await createAccount({
      budget: daily(100n),
      ...(hasMonthly && { ownerBudget: { amountNano: 100_000n, period: 'monthly' } }),
    });
    await charge(account, 40n);
    const one = request(account, { fixedNano: 60n });
    await runAdmission(services.redis, one);
    // As if it had been admitted yesterday.
    await moveBudget(account, -1);
    await ageReservation(services.redis, account.id, one.requestId, 86_400_000);
    t.is((await settle(account, one.requestId, 110n)).costNano, 60n);
    t.deepEqual(await readBudget(account), { spentNano: 0n, reservedNano: 0n });
    const { balanceNano, reservedNano } = await services.hotAccounts.get(account.id);
    t.deepEqual([balanceNano, reservedNano], [1_000_000n - 100n, 0n]);
  });

test('a lost request that is settled when its period has ended costs no more than it had reserved', async (t) => {
  const account = await createAccount({ budget: daily(100n) });
  const lost = request(account, { fixedNano: 60n });
  await runAdmission(services.redis, lost);
  await moveBudget(account, -1);
  await ageReservation(services.redis, account.id, lost.requestId, 86_400_000);
  const reservations = new ReservationStore(services.redis);
  const { orphans } = await reservations.findOrphans(shardOf(account.id));
  t.true(await reservations.releaseOrphan(orphans.find((one) => one.requestId === lost.requestId)!));
  t.is((await settle(account, lost.requestId, 110n)).costNano, 60n);
  t.deepEqual(await readBudget(account), { spentNano: 0n, reservedNano: 0n });
});

test('a request that calls no model, and one that is lost, give back what they reserved', async (t) => {
  const account = await createAccount({ budget: daily(300n) });
  const released = request(account);
  await runAdmission(services.redis, released);
  const { requestId } = released;
  await releaseReservation(services.redis, { accountId: account.id, requestId, claimHash: null });
  t.deepEqual(await readBudget(account), { spentNano: 0n, reservedNano: 0n });
  // The day of a request near midnight may be the one before.
  const lost = request(account);
  await runAdmission(services.redis, lost);
  const reservations = new ReservationStore(services.redis);
  await ageReservation(services.redis, account.id, lost.requestId, 60_000);
  const { orphans } = await reservations.findOrphans(shardOf(account.id));
  const orphan = orphans.find((one) => one.requestId === lost.requestId)!;
  t.true(await reservations.releaseOrphan(orphan));
  const isSameDay = toDay(orphan.admittedAtMs) === toDay(Date.now());
  t.deepEqual(await readBudget(account), { spentNano: 0n, reservedNano: isSameDay ? 0n : 100n });
  await settle(account, lost.requestId, 80n);
  t.deepEqual(await readBudget(account), {
    spentNano: isSameDay ? 80n : 0n,
    reservedNano: isSameDay ? 0n : 100n,
  });
});

test.serial('a new budget counts what was spent and reserved before, wherever it is stored', async (t) => {
  const account = await createAccount({});
  await charge(account, 30n);
  await services.moveAll();
  await charge(account, 4n);
  const running = request(account);
  await runAdmission(services.redis, running);
  await changeAccount(services, account.id, { budget: daily(1_000n) });
  t.deepEqual(await readBudget(account), { spentNano: 34n, reservedNano: 100n });
  await settle(account, running.requestId, 100n);
  t.deepEqual(await readBudget(account), { spentNano: 134n, reservedNano: 0n });
});

test.serial(
  'a budget that is removed and set again counts what was spent in between, whatever died midway',
  async (t) => {
    const account = await createAccount({ budget: daily(1_000n) });
    await charge(account, 30n);
    const running = request(account);
    await runAdmission(services.redis, running);
    const { redis, accounts, ledger } = services;
    const dying = Object.create(accounts, {
      findById: {
        value: async (id: string, isForRestore = false) => {
          if (isForRestore) throw new Error('the process dies');
          return await accounts.findById(id);
        },
      },
    }) as typeof accounts;
    const deps = { redis, accounts, hotAccounts: new HotAccountStore(redis, dying, ledger) };
    const changeAndDie = async (budget: Budget | null): Promise<void> => {
      await changeAccount(deps, account.id, { budget }).catch(() => undefined);
    };
    await changeAndDie(null);
    await charge(account, 5n);
    await settle(account, running.requestId, 100n);
    await changeAndDie(daily(1_000n));
    await charge(account, 7n);
    await changeAccount(services, account.id, { budget: daily(1_000n) });
    t.deepEqual(await readBudget(account), { spentNano: 142n, reservedNano: 0n });
  },
);

test('spending of other days counts to longer periods only', async (t) => {
  const account = await createAccount({});
  const today = toDay(Date.now());
  const first = startOfPeriod('monthly', today);
  const spentByDay = Object.fromEntries(
    [first - 1, first, today].map((day, i) => [
      new Date(day * 86_400_000).toISOString().slice(0, 10),
      BigInt(10 ** i),
    ]),
  );
  await services.mongo.db
    .collection('accounts')
    .updateOne({ _id: account.id as never }, { $set: { spentByDay } });
  await changeAccount(services, account.id, { budget: { amountNano: 1_000n, period: 'monthly' } });
  t.is((await readBudget(account)).spentNano, first === today ? 100n : 110n);
  await changeAccount(services, account.id, { budget: daily(1_000n) });
  t.is((await readBudget(account)).spentNano, 100n);
});

test.serial('after Redis has lost its data, the sums of the period are what they were', async (t) => {
  const account = await createAccount({ budget: daily(10_000n), models: ['m'] });
  for (const cost of [17n, 123n, 8n]) await charge(account, cost);
  await services.moveAll();
  const before = await services.readHash(account.id);
  await flushAll(services.redis);
  await services.hotAccounts.load(account.id);
  const { bud, mod, ext } = await services.readHash(account.id);
  t.deepEqual({ bud, mod, ext }, { bud: before['bud']!, mod: ',m,', ext: '1' });
  t.deepEqual(await readBudget(account), { spentNano: 148n, reservedNano: 0n });
});

test.serial(
  'an account that is missing from Redis gets the sums of the ledger, the stream and its reservations',
  async (t) => {
    const account = await createAccount({
      budget: daily(10_000n),
      ownerBudget: { amountNano: 5_000n, period: 'weekly' },
    });
    await charge(account, 17n);
    await services.moveAll();
    await charge(account, 100n);
    await runAdmission(services.redis, request(account, { fixedNano: 33n }));
    const { last: _last, win: _win, ...before } = await services.readHash(account.id);
    await services.redis.del(redisKeys.account(account.id));
    await services.hotAccounts.load(account.id);
    const { last: _last2, win: _win2, ...after } = await services.readHash(account.id);
    t.deepEqual(after, before);
    t.deepEqual(await readBudget(account), { spentNano: 117n, reservedNano: 33n });
  },
);

test.serial('a request counts to the day of its admission, whatever day the api process had', async (t) => {
  const account = await createAccount({ budget: daily(10_000n) });
  const one = request(account);
  await runAdmission(services.redis, one);
  const yesterday = Date.now() - 86_400_000;
  await runSettlement(services.redis, usageEvent(account.id, one.requestId, { at: yesterday }), 70n);
  t.deepEqual(await readBudget(account), { spentNano: 70n, reservedNano: 0n });
  const reload = async () => {
    await services.redis.del(redisKeys.account(account.id));
    await services.hotAccounts.load(account.id);
    return await readBudget(account);
  };
  t.deepEqual(await reload(), { spentNano: 70n, reservedNano: 0n });
  await services.moveAll();
  t.deepEqual(await reload(), { spentNano: 70n, reservedNano: 0n });
});

test.serial(
  'a request counts to the day of its admission, even if Redis has lost it before its account was changed',
  async (t) => {
    const account = await createAccount({ budget: daily(10_000n) });
    const one = request(account);
    await runAdmission(services.redis, one);
    const yesterday = Date.now() - 86_400_000;
    await runSettlement(services.redis, usageEvent(account.id, one.requestId, { at: yesterday }), 70n);
    // As if the reader of the ledger had died after its first write.
    const entries = await readEntries(services.redis, account.id);
    await services.ledger.insertEntries(entries.map(toLedgerDocument));
    await flushAll(services.redis);
    await services.hotAccounts.load(account.id);
    t.deepEqual(await readBudget(account), { spentNano: 70n, reservedNano: 0n });
  },
);

test('a model must be allowed by the operator and by the owner', async (t) => {
  const account = await createAccount({ models: ['a', 'vendor/b'], ownerModels: ['vendor/b', 'c'] });
  const outcomes = await Promise.all(
    ['a', 'vendor/b', 'c', 'b', 'vendor', ''].map(async (model) => (await admit(account, { model })).outcome),
  );
  // Admission does not check requests without a model, such as batches.
  t.deepEqual(outcomes, ['model_refused', 'ok', 'model_refused', 'model_refused', 'model_refused', 'ok']);
});

test('a key may be used from its addresses, of IPv4, IPv6 and both forms of IPv4', async (t) => {
  const addresses = ['10.0.0.0/8', '192.0.2.7', '2001:db8::/32', '::ffff:198.51.100.0/120'];
  const account = await createAccount({ addresses });
  const outcomeFrom = async (address: string): Promise<string> =>
    (await admit(account, { address: writeAddress(address) })).outcome;
  const allowed = [
    '10.0.0.0',
    '10.255.255.255',
    '::ffff:10.1.2.3',
    '192.0.2.7',
    '2001:db8::1',
    '2001:db8:ffff::',
    '198.51.100.9',
  ];
  for (const address of allowed) t.is(await outcomeFrom(address), 'ok', address);
  const refused = [
    '9.255.255.255',
    '11.0.0.0',
    '192.0.2.6',
    '192.0.2.8',
    '2001:db7:ffff::',
    '2001:db9::',
    '::1',
    '198.51.101.0',
    '',
  ];
  for (const address of refused) t.is(await outcomeFrom(address), 'address_refused', address);
  const { id: accountId, keyHash } = account;
  const before = { accountId, keyHash, slots: 0, claimHash: null };
  t.is(
    (await runPreAdmission(services.redis, { ...before, address: writeAddress('::1') })).outcome,
    'address_refused',
  );
  t.is(
    (await runPreAdmission(services.redis, { ...before, address: writeAddress('10.1.1.1') })).outcome,
    'ok',
  );
});

test('a key works until it expires', async (t) => {
  const account = await createAccount({ expiresAt: new Date(Date.now() + 3_600_000) });
  t.is((await admit(account)).outcome, 'ok');
  const expiresAt = new Date(Date.now() - 1);
  await changeAccount(services, account.id, { expiresAt });
  t.deepEqual(await admit(account), { outcome: 'expired', expiredAt: expiresAt });
  await changeAccount(services, account.id, { expiresAt: null });
  t.is((await admit(account)).outcome, 'ok');
});

test('requests are rejected while the last minute is over the limit of tokens: prompts at admission, output when settled', async (t) => {
  const account = await createAccount({ tokensPerMinute: 100 });
  const first = request(account, { promptTokens: 60 });
  t.like(await runAdmission(services.redis, first), { outcome: 'ok', tokens: { limit: 100, remaining: 40 } });
  const second = request(account, { promptTokens: 30 });
  t.like(await runAdmission(services.redis, second), { outcome: 'ok', tokens: { remaining: 10 } });
  const event = usageEvent(account.id, first.requestId, { at: Date.now(), completionTokens: 25 });
  await runSettlement(services.redis, event, 1n);
  const rejected = await admit(account, { promptTokens: 1 });
  t.like(rejected, { outcome: 'tokens_limited', tokens: { limit: 100, remaining: 0 } });
  if (rejected.outcome !== 'tokens_limited') return;
  t.true(rejected.tokens.retryAfterMs > 0 && rejected.tokens.retryAfterMs <= 60_000);
  const { id: accountId, keyHash } = account;
  const preAdmission = await runPreAdmission(services.redis, {
    accountId,
    keyHash,
    slots: 0,
    claimHash: null,
  });
  t.is(preAdmission.outcome, 'tokens_limited');
  // As if a minute had passed.
  const window = redisKeys.tokenWindow(account.id);
  const buckets = await services.redis.lrange(window, 0, -1);
  await services.redis.del(window);
  await services.redis.rpush(
    window,
    ...buckets.map((bucket) => bucket.replace(/^\d+/, (second) => String(Number(second) - 60))),
  );
  t.like(await admit(account, { promptTokens: 5 }), { outcome: 'ok', tokens: { limit: 100, remaining: 95 } });
});

test('over the limit of tokens, a batch is admitted, because its lines count none', async (t) => {
  const account = await createAccount({ tokensPerMinute: 100 });
  await admit(account, { promptTokens: 100 });
  const { model: _model, ...batch } = request(account);
  t.is((await runAdmission(services.redis, batch)).outcome, 'ok');
  const { id: accountId, keyHash } = account;
  const before = { accountId, keyHash, slots: 1, claimHash: null };
  t.is((await runPreAdmission(services.redis, { ...before, checksTokens: false })).outcome, 'ok');
  t.is((await runPreAdmission(services.redis, before)).outcome, 'tokens_limited');
});

test('output that is settled after a step of the clock drops the tokens of other minutes', async (t) => {
  const account = await createAccount({ tokensPerMinute: 100 });
  const first = request(account, { promptTokens: 0 });
  await runAdmission(services.redis, first);
  const [now] = (await services.redis.time()).map(Number);
  const window = redisKeys.tokenWindow(account.id);
  // The clock was ahead, and nothing was admitted since.
  await services.redis.rpush(window, `${now! - 100}:30`, `${now! + 3_000}:500`);
  await services.redis.hset(redisKeys.account(account.id), 'twin', 530);
  const event = usageEvent(account.id, first.requestId, { at: Date.now(), completionTokens: 20 });
  await runSettlement(services.redis, event, 1n);
  t.is(await services.redis.llen(window), 1);
  t.like(await admit(account, { promptTokens: 0 }), { outcome: 'ok', tokens: { remaining: 80 } });
});

test('output that is settled a minute after the last prompt is all that counts', async (t) => {
  const account = await createAccount({ tokensPerMinute: 100 });
  const first = request(account, { promptTokens: 90 });
  await runAdmission(services.redis, first);
  // The window expires a minute after the last token.
  await services.redis.del(redisKeys.tokenWindow(account.id));
  const event = usageEvent(account.id, first.requestId, { at: Date.now(), completionTokens: 20 });
  await runSettlement(services.redis, event, 1n);
  t.like(await admit(account, { promptTokens: 0 }), { outcome: 'ok', tokens: { remaining: 80 } });
});

test('a changed setting holds for the next request, whatever runs at the same time', async (t) => {
  const account = await createAccount({});
  let isChanged = false;
  let wrong = 0;
  const load = Array.from({ length: 8 }, async () => {
    for (let i = 0; i < 60; i++) {
      const mustBeRefused = isChanged;
      const one = request(account, { fixedNano: 1n });
      const { outcome } = await runAdmission(services.redis, one);
      if (mustBeRefused && outcome !== 'model_refused') wrong += 1;
      if (outcome === 'ok') await settle(account, one.requestId, 1n);
    }
  });
  const changing = changeAccount(services, account.id, { models: ['other'] }).then(() => {
    isChanged = true;
  });
  await Promise.all([...load, changing]);
  t.is(wrong, 0);
  t.is((await admit(account)).outcome, 'model_refused');
});

test('an account without restrictions has no field of them, and one whose restrictions are cleared neither', async (t) => {
  const account = await createAccount({});
  const plain = Object.keys(await services.readHash(account.id)).sort();
  await changeAccount(services, account.id, {
    budget: daily(1n),
    ownerBudget: daily(2n),
    models: ['a'],
    ownerModels: ['b'],
    addresses: ['10.0.0.1'],
    expiresAt: new Date(),
    tokensPerMinute: 5,
    lowBalanceNano: 7n,
  });
  const set = (await services.hotAccounts.get(account.id)).restrictions;
  t.like(set, {
    models: ['a'],
    ownerModels: ['b'],
    addresses: ['10.0.0.1'],
    tokensPerMinute: 5,
    lowBalanceNano: 7n,
  });
  await changeAccount(services, account.id, {
    budget: null,
    ownerBudget: null,
    models: null,
    ownerModels: null,
    addresses: null,
    expiresAt: null,
    tokensPerMinute: null,
    lowBalanceNano: null,
  });
  t.deepEqual(Object.keys(await services.readHash(account.id)).sort(), plain);
  const { restrictions } = (await services.hotAccounts.get(account.id)) satisfies HotAccount;
  t.deepEqual(new Set(Object.values(restrictions)), new Set([null]));
});
