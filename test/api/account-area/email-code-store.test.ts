import { randomUUID } from 'node:crypto';
import test from 'ava';
import fc from 'fast-check';
import { EmailCodeStore, type ExpectedCode } from '../../../api/account-area/email-code-store.ts';
import { redisKeys } from '../../../shared/platform/redis/redis-keys.ts';
import { useRedis } from '../../support/use-redis.ts';

const redis = useRedis(test);
const openStore = (masterKey = 'test master key'): EmailCodeStore => new EmailCodeStore(redis(), masterKey);
const email = 'somebody@example.com';
const signIn = { purpose: 'login', email, subject: '' } as const;
const forSignIn: ExpectedCode = { purposes: ['login', 'signup'], subject: '' };
const unknown = { outcome: 'unknown' };
/** A different code. */
const wrong = (code: string): string => String((Number(code) + 1) % 1_000_000).padStart(6, '0');

test('the right code is accepted once, and returns its purpose and mailbox', async (t) => {
  const store = openStore();
  const { challengeId, code } = await store.create({ ...signIn, purpose: 'signup' });
  t.deepEqual(await store.verify(challengeId, code, forSignIn), {
    outcome: 'right',
    purpose: 'signup',
    email,
  });
  t.deepEqual(await store.verify(challengeId, code, forSignIn), unknown);
  t.is(await redis().exists(redisKeys.emailCode(challengeId)), 0);
});

test('only one of several parallel verifications of a code succeeds', async (t) => {
  const store = openStore();
  const { challengeId, code } = await store.create(signIn);
  const results = await Promise.all(
    Array.from({ length: 20 }, () => store.verify(challengeId, code, forSignIn)),
  );
  t.is(results.filter(({ outcome }) => outcome === 'right').length, 1);
});

for (let wrongCount = 0; wrongCount < 8; wrongCount++) {
  const isAccepted = wrongCount < 5;
  test(`${wrongCount} wrong codes in parallel leave the right one ${isAccepted ? 'valid' : 'invalid'}`, async (t) => {
    const store = openStore();
    const { challengeId, code } = await store.create(signIn);
    // On one connection, Redis runs the commands in the order in which they are sent.
    const attempts = [...Array.from({ length: wrongCount }, () => wrong(code)), code];
    const results = await Promise.all(attempts.map((code) => store.verify(challengeId, code, forSignIn)));
    t.is(results.at(-1)!.outcome, isAccepted ? 'right' : 'unknown');
    t.is(await redis().exists(redisKeys.emailCode(challengeId)), 0, 'the code is used up in either case');
  });
}

test('any string sent as a code counts as an attempt, and never causes an error', async (t) => {
  const store = openStore();
  const { challengeId, code } = await store.create(signIn);
  const texts = ['', '12345', `${code}0`, '\ud800'];
  for (const text of texts)
    t.deepEqual(await store.verify(challengeId, text, forSignIn), { outcome: 'wrong' });
  t.is(await redis().hget(redisKeys.emailCode(challengeId), 'attempts'), String(texts.length));
  await fc.assert(
    fc.asyncProperty(fc.string({ unit: 'binary', maxLength: 40 }), async (text) => {
      const { challengeId, code } = await store.create(signIn);
      return text === code || (await store.verify(challengeId, text, forSignIn)).outcome === 'wrong';
    }),
    { numRuns: 50 },
  );
});

test('a code is invalid for another purpose or subject, and using it for those does not make it invalid', async (t) => {
  const store = openStore();
  const subject = `${randomUUID()}:${randomUUID()}`;
  const { challengeId, code } = await store.create({ purpose: 'reveal', email, subject });
  const others: ExpectedCode[] = [
    { purposes: ['unlink'], subject },
    { purposes: ['regenerate'], subject },
    { purposes: [], subject },
    { purposes: ['reveal'], subject: '' },
    { purposes: ['reveal'], subject: `${randomUUID()}:${randomUUID()}` },
    forSignIn,
  ];
  for (const expected of others) {
    t.deepEqual(await store.verify(challengeId, code, expected), unknown);
    t.deepEqual(await store.verify(challengeId, wrong(code), expected), unknown);
  }
  t.is(await redis().hget(redisKeys.emailCode(challengeId), 'attempts'), '0');
  t.deepEqual(await store.verify(challengeId, code, { purposes: ['reveal'], subject }), {
    outcome: 'right',
    purpose: 'reveal',
    email,
  });
});

test('the code of one challenge is invalid for another', async (t) => {
  const store = openStore();
  const one = await store.create(signIn);
  let other = await store.create(signIn);
  while (other.code === one.code) other = await store.create(signIn);
  t.is((await store.verify(other.challengeId, one.code, forSignIn)).outcome, 'wrong');
});

test('a challenge id that does not exist or is malformed is reported as unknown', async (t) => {
  for (const challengeId of [randomUUID(), '', 'x'.repeat(10_000), '*', '\ud800']) {
    t.deepEqual(await openStore().verify(challengeId, '000000', forSignIn), unknown);
  }
});

test('challenge ids are case-insensitive', async (t) => {
  const { challengeId, code } = await openStore().create(signIn);
  t.is((await openStore().verify(challengeId.toUpperCase(), code, forSignIn)).outcome, 'right');
});

test('codes have six digits, including leading zeros', async (t) => {
  const store = openStore();
  const challenges = await Promise.all(Array.from({ length: 300 }, () => store.create(signIn)));
  t.true(challenges.every(({ code }) => /^\d{6}$/.test(code)));
  const withZero = challenges.find(({ code }) => code.startsWith('0'));
  t.truthy(withZero, 'the probability of none in 300 is 1 in 10^13');
  t.is((await store.verify(withZero!.challengeId, withZero!.code.slice(1), forSignIn)).outcome, 'wrong');
  t.is((await store.verify(withZero!.challengeId, withZero!.code, forSignIn)).outcome, 'right');
});

test("a code is valid for ten minutes by Redis's clock, and attempts at it do not extend that", async (t) => {
  const store = openStore();
  const beforeMs = Date.now();
  const { challengeId, code, expiresAt } = await store.create(signIn);
  const afterMs = Date.now();
  t.true(expiresAt.getTime() >= beforeMs + 600_000 && expiresAt.getTime() <= afterMs + 600_000);
  const key = redisKeys.emailCode(challengeId);
  const ttl = await redis().ttl(key);
  t.true(ttl > 0 && ttl <= 600);
  await redis().expire(key, 100);
  await store.verify(challengeId, wrong(code), forSignIn);
  const ttlAfter = await redis().ttl(key);
  t.true(ttlAfter > 0 && ttlAfter <= 100);
  await redis().pexpireat(key, 1);
  t.deepEqual(await store.verify(challengeId, code, forSignIn), unknown);
});

test('a code that could not be mailed is invalid', async (t) => {
  const store = openStore();
  const { challengeId, code } = await store.create(signIn);
  await store.discard(challengeId);
  t.deepEqual(await store.verify(challengeId, code, forSignIn), unknown);
});

test("a challenge with another challenge's sealed data does not sign anyone in", async (t) => {
  const store = openStore();
  const ownChallenge = await store.create({ ...signIn, email: 'attacker@example.com' });
  const otherChallenge = await store.create(signIn);
  const [ownKey, otherKey] = [ownChallenge, otherChallenge].map(({ challengeId }) =>
    redisKeys.emailCode(challengeId),
  );
  await redis().hset(ownKey!, 'sealed', (await redis().hget(otherKey!, 'sealed'))!);
  t.deepEqual(await store.verify(ownChallenge.challengeId, ownChallenge.code, forSignIn), {
    outcome: 'wrong',
  });
});

test('Redis stores no code and no address in clear text, and the stored forms of equal codes differ', async (t) => {
  const store = openStore();
  const challenges = await Promise.all(Array.from({ length: 20 }, () => store.create(signIn)));
  const macs = new Set<string>();
  for (const { challengeId, code } of challenges) {
    const { mac, sealed, ...otherFields } = await redis().hgetall(redisKeys.emailCode(challengeId));
    t.deepEqual(otherFields, { purpose: 'login', subject: '', attempts: '0' });
    t.false(sealed!.includes(email));
    t.regex(mac!, /^[\w-]{43}$/);
    t.false(mac!.includes(code));
    macs.add(mac!);
  }
  t.is(macs.size, challenges.length);
});

test('a code is invalid under another master key', async (t) => {
  const { challengeId, code } = await openStore().create(signIn);
  t.deepEqual(await openStore('another master key').verify(challengeId, code, forSignIn), {
    outcome: 'wrong',
  });
});
