import { randomUUID } from 'node:crypto';
import test from 'ava';
import { callerNetwork } from '../../../../api/http/callers/caller-network.ts';
import { Captcha } from '../../../../api/account-area/captcha/captcha.ts';
import type { Point } from '../../../../api/account-area/captcha/place-icons.ts';
import { hashSecret } from '../../../../shared/accounts/credentials.ts';
import { redisKeys } from '../../../../shared/platform/redis/redis-keys.ts';
import { createLogger } from '../../../../shared/platform/runtime/logger.ts';
import { findKeys } from '../../../support/all-of-redis.ts';
import { solveCaptcha } from '../../../support/solve-captcha.ts';
import { useRedis } from '../../../support/use-redis.ts';

const redis = useRedis(test);
let shared: Captcha | undefined;

const useCaptcha = (): Captcha => {
  shared ??= new Captcha({ redis: redis(), log: createLogger('test', 'silent') });
  return shared;
};
test.after.always(() => shared?.close());

/** Tests in this file run serially: only a few callers per network may wait for a captcha at the same time. */
const network = '203.0.113.7';

async function requestAndSolve(): Promise<{ challengeId: string; points: Point[] }> {
  const { challengeId } = await useCaptcha().challenge('login', network);
  return { challengeId, points: await solveCaptcha(redis(), challengeId) };
}

async function earnToken(): Promise<string> {
  const { challengeId, points } = await requestAndSolve();
  return (await useCaptcha().verify(challengeId, points, network))!;
}

test.serial(
  'a challenge has two images, a size, an expiry and a unique id, and is smaller than 100 KB',
  async (t) => {
    const challenge = await useCaptcha().challenge('signup', network);
    const other = await useCaptcha().challenge('signup', network);
    t.like(challenge, { width: 480, height: 320, expiresInSeconds: 300 });
    t.regex(challenge.image, /^data:image\/webp;base64,[A-Za-z0-9+/]+=*$/);
    t.regex(challenge.promptImage, /^data:image\/webp;base64,[A-Za-z0-9+/]+=*$/);
    t.regex(challenge.challengeId, /^[A-Za-z0-9_-]{32}$/);
    t.true(JSON.stringify(challenge).length < 100_000);
    t.not(challenge.challengeId, other.challengeId);
    t.not(challenge.image, other.image);
  },
);

test.serial('correct clicks earn a token, which can be redeemed once', async (t) => {
  const token = await earnToken();
  t.regex(token, /^[A-Za-z0-9_-]{43}$/);
  t.true(await useCaptcha().redeemToken(token, 'login', network));
  t.false(await useCaptcha().redeemToken(token, 'login', network));
});

test.serial('a challenge can be attempted once, whether the clicks are right or wrong', async (t) => {
  const rightAnswer = await requestAndSolve();
  t.truthy(await useCaptcha().verify(rightAnswer.challengeId, rightAnswer.points, network));
  t.is(await useCaptcha().verify(rightAnswer.challengeId, rightAnswer.points, network), null);

  const wrongAnswer = await requestAndSolve();
  t.is(await useCaptcha().verify(wrongAnswer.challengeId, wrongAnswer.points.toReversed(), network), null);
  t.is(await useCaptcha().verify(wrongAnswer.challengeId, wrongAnswer.points, network), null);
});

test.serial('only one of many simultaneous attempts succeeds, for challenges and for tokens', async (t) => {
  const { challengeId, points } = await requestAndSolve();
  const tokens = await Promise.all(
    Array.from({ length: 20 }, () => useCaptcha().verify(challengeId, points, network)),
  );
  const [token, ...more] = tokens.filter((token) => token !== null);
  t.is(more.length, 0);
  const redeemed = await Promise.all(
    Array.from({ length: 20 }, () => useCaptcha().redeemToken(token!, 'login', network)),
  );
  t.is(redeemed.filter(Boolean).length, 1);
});

test.serial(
  'five callers from one IPv6 /48 get captchas at the same time, and so does one from another network',
  async (t) => {
    const captcha = new Captcha({ redis: redis(), log: createLogger('test', 'silent') });
    t.teardown(() => captcha.close());
    const networkOf = (i: number): string => callerNetwork(`2001:db8:9:${i}::1`);
    const flood = Array.from({ length: 6 }, (_, i) => captcha.challenge('login', networkOf(i)));
    const other = captcha.challenge('login', callerNetwork('2001:db8:a:1::1'));
    const outcomes = await Promise.allSettled(flood);
    t.is(outcomes.filter(({ status }) => status === 'fulfilled').length, 5);
    await t.throwsAsync(flood[5]!, { code: 'queue_full' });
    await t.notThrowsAsync(other);
  },
);

test.serial('too few or too many clicks earn no token, even if each one is right', async (t) => {
  const few = await requestAndSolve();
  t.is(await useCaptcha().verify(few.challengeId, few.points.slice(0, 3), network), null);
  const many = await requestAndSolve();
  t.is(await useCaptcha().verify(many.challengeId, [...many.points, many.points[0]!], network), null);
});

test.serial('another network cannot solve a challenge or use a token, and trying consumes it', async (t) => {
  const { challengeId, points } = await requestAndSolve();
  t.is(await useCaptcha().verify(challengeId, points, '198.51.100.1'), null);
  t.is(await useCaptcha().verify(challengeId, points, network), null);

  const token = await earnToken();
  t.false(await useCaptcha().redeemToken(token, 'login', '198.51.100.1'));
  t.false(await useCaptcha().redeemToken(token, 'login', network));
});

test.serial('a token for one purpose is rejected for another, and trying consumes it', async (t) => {
  const token = await earnToken();
  t.false(await useCaptcha().redeemToken(token, 'signup', network));
  t.false(await useCaptcha().redeemToken(token, 'login', network));
});

test.serial('challenges and tokens expire after five minutes', async (t) => {
  const { challengeId, points } = await requestAndSolve();
  const token = await earnToken();
  const keys = [redisKeys.captcha(challengeId), redisKeys.captchaToken(hashSecret(token))];
  for (const key of keys) {
    const ttl = await redis().ttl(key);
    t.true(ttl > 200 && ttl <= 300, `${ttl}`);
    // Simulates the expiry in Redis.
    await redis().pexpire(key, 0);
  }
  t.is(await useCaptcha().verify(challengeId, points, network), null);
  t.false(await useCaptcha().redeemToken(token, 'login', network));
});

test.serial('an unknown challenge or token is rejected', async (t) => {
  t.is(await useCaptcha().verify(randomUUID(), [], network), null);
  t.false(await useCaptcha().redeemToken(randomUUID(), 'login', network));
});

test.serial('only the hash of a token is stored', async (t) => {
  const token = await earnToken();
  const names = await findKeys(redis(), '*captcha-token*');
  t.true(names.includes(redisKeys.captchaToken(hashSecret(token))));
  for (const name of names) {
    t.false(name.includes(token));
    t.false((await redis().get(name))!.includes(token));
  }
});
