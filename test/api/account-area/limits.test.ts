import { randomUUID } from 'node:crypto';
import test from 'ava';
import { callerNetwork } from '../../../api/http/callers/caller-network.ts';
import { Limits, webLimits, type WebLimitName } from '../../../api/account-area/limits.ts';
import { AppError } from '../../../shared/contract/errors.ts';
import { findKeys } from '../../support/all-of-redis.ts';
import { ageWindow, readOldestMs, readRedisMs } from '../../support/sliding-windows.ts';
import { useRedis } from '../../support/use-redis.ts';

const redis = useRedis(test);
const openLimits = (): Limits => new Limits(redis(), 'test master key');
const keysOf = (name: string): Promise<string[]> => findKeys(redis(), `mg:{web}:limit:${name}:*`);

const periodNames: Record<number, string> = { 60: 'minute', 3600: 'hour', 86_400: 'day' };

/** The limits promised to users. */
const promised: Record<WebLimitName, [limit: number, windowSeconds: number]> = {
  'mailed-codes-mailbox': [10, 3600],
  'mailed-codes-network': [100, 3600],
  'codes-without-captcha-mailbox': [3, 3600],
  'codes-without-captcha-network': [10, 3600],
  'captcha-challenges-network': [60, 60],
  'captcha-verifications-network': [60, 60],
  'wrong-codes-network': [100, 3600],
  'wrong-keys-user': [10, 3600],
  'wrong-keys-network': [100, 3600],
  'wrong-admin-tokens-network': [100, 3600],
  'confirmation-codes-user': [10, 3600],
  'first-accounts-network': [100, 86_400],
  'changes-user': [300, 60],
  'daily-changes-user': [2_000, 86_400],
};

for (const name of Object.keys(webLimits) as WebLimitName[]) {
  const [limit, windowSeconds] = promised[name];
  test(`${name}: ${limit} in ${windowSeconds} s are allowed, and the next request is rejected with a retry-after`, async (t) => {
    const [limits, who] = [openLimits(), randomUUID()];
    await Promise.all(Array.from({ length: limit }, () => limits.take([{ name, who }])));
    const error = await t.throwsAsync(limits.take([{ name, who }]), { instanceOf: AppError });
    t.is(error.code, 'too_many_attempts');
    t.is(error.status, 429);
    const seconds = Number(error.headers['retry-after']);
    t.true(Number.isInteger(seconds) && seconds >= 1 && seconds <= windowSeconds);
    t.is(
      error.publicMessage,
      `The limit of ${limit} ${webLimits[name].counted} per ${periodNames[windowSeconds]} has been reached. Try again in ${seconds} s.`,
    );
    await t.notThrowsAsync(limits.take([{ name, who: randomUUID() }]), 'other parties have their own limit');
  });
}

/** How many times the limit of one network is allowed for an IPv6 /48; ten unless listed here. */
const siteFactors: Partial<Record<WebLimitName, number>> = {
  'mailed-codes-network': 2,
  'wrong-codes-network': 2,
  'wrong-admin-tokens-network': 2,
};

for (const name of Object.keys(webLimits).filter((name) => name.endsWith('-network')) as WebLimitName[]) {
  const factor = siteFactors[name] ?? 10;
  test(`${name}: an IPv6 /48 is allowed ${factor} times the limit of one of its networks`, async (t) => {
    const limits = openLimits();
    const [limit] = promised[name];
    const who = (network: number): string => callerNetwork(`2001:db8:5:${network}::1`);
    for (let network = 0; network < factor; network++) {
      await Promise.all(Array.from({ length: limit }, () => limits.take([{ name, who: who(network) }])));
    }
    const error = await t.throwsAsync(limits.take([{ name, who: who(factor) }]), { instanceOf: AppError });
    t.is(error.code, 'too_many_attempts');
    t.true(
      error.publicMessage.startsWith(
        `The limit of ${limit * factor} ${webLimits[name].counted} (an IPv6 /48) per `,
      ),
      error.publicMessage,
    );
    const outside = [callerNetwork('2001:db8:6:1::1'), '192.0.2.1'];
    for (const other of outside) await t.notThrowsAsync(limits.take([{ name, who: other }]));
  });
}

test.serial(
  'only network limits have a second window, for the /48; limits per mailbox and per user have one window',
  async (t) => {
    const limits = openLimits();
    for (const name of ['mailed-codes-mailbox', 'changes-user'] as const) {
      const before = (await keysOf(name)).length;
      await limits.take([{ name, who: '2001:db8:7:1::/64' }]);
      t.is((await keysOf(name)).length, before + 1, name);
    }
  },
);

test.serial('retry-after is the time until the first slot is free, in whole seconds', async (t) => {
  const [limits, party] = [openLimits(), { name: 'wrong-keys-user', who: randomUUID() } as const];
  const others = new Set(await keysOf('wrong-keys-user'));
  await limits.count([party]);
  const [key] = (await keysOf('wrong-keys-user')).filter((key) => !others.has(key));
  await ageWindow(redis(), key!, 3_000_000);
  for (let i = 0; i < 9; i++) await limits.count([party]);
  const freeAtMs = (await readOldestMs(redis(), key!)) + 3_600_000;
  const beforeMs = await readRedisMs(redis());
  const error = await t.throwsAsync(limits.check([party]), { instanceOf: AppError });
  const afterMs = await readRedisMs(redis());
  const seconds = Number(error.headers['retry-after']);
  t.true(seconds <= Math.ceil((freeAtMs - beforeMs) / 1_000));
  t.true(seconds >= Math.ceil((freeAtMs - afterMs) / 1_000));
});

test('a request rejected by one limit does not count towards the others', async (t) => {
  const [limits, email, network] = [openLimits(), randomUUID(), randomUUID()];
  const parties = [
    { name: 'codes-without-captcha-network', who: network },
    { name: 'codes-without-captcha-mailbox', who: email },
  ] as const;
  for (let i = 0; i < 3; i++) await limits.take(parties);
  for (let i = 0; i < 5; i++) {
    await t.throwsAsync(limits.take(parties), { message: /^The limit of 3 codes sent to one mailbox/ });
  }
  for (let i = 0; i < 7; i++) await limits.take([parties[0]]);
  await t.throwsAsync(limits.take([parties[0]]), { message: /^The limit of 10 / });
});

test('checking a limit is not an attempt, and failures are recorded until the limit is reached', async (t) => {
  const [limits, user, network] = [openLimits(), randomUUID(), randomUUID()];
  const parties = [
    { name: 'wrong-keys-user', who: user },
    { name: 'wrong-keys-network', who: network },
  ] as const;
  for (let i = 0; i < 20; i++) await limits.check(parties);
  for (let i = 0; i < 10; i++) {
    await limits.check(parties);
    await limits.count(parties);
  }
  await t.throwsAsync(limits.check(parties), { instanceOf: AppError });
  await t.notThrowsAsync(limits.check([parties[1]]), 'other users of the network are not limited');
  for (let i = 10; i < 100; i++) await limits.count([parties[1]]);
  await t.throwsAsync(limits.check([parties[1]]), { instanceOf: AppError });
});

test.serial(
  'for rate limits, Redis stores neither the mailbox or address, nor a hash that others could compute',
  async (t) => {
    const who = 'somebody@example.com';
    await openLimits().take([{ name: 'mailed-codes-mailbox', who }]);
    const before = await keysOf('mailed-codes-mailbox');
    t.true(before.every((key) => !key.includes('somebody') && /:[\w-]{43}$/.test(key)));
    await new Limits(redis(), 'another master key').take([{ name: 'mailed-codes-mailbox', who }]);
    t.is((await keysOf('mailed-codes-mailbox')).length, before.length + 1);
  },
);
