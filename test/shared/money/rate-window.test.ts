import { randomUUID } from 'node:crypto';
import test from 'ava';
import fc from 'fast-check';
import { runAdmission } from '../../../shared/money/admit-script.ts';
import { createIdempotencyClaim } from '../../../shared/money/idempotency-claim.ts';
import { runPreAdmission, type PreAdmissionResult } from '../../../shared/money/pre-admit-script.ts';
import { redisKeys } from '../../../shared/platform/redis/redis-keys.ts';
import { admission, createHotAccount, testKeyHash } from '../../support/billing.ts';
import { useRedis } from '../../support/use-redis.ts';

/** The sliding one-minute rate window, including when Redis's clock steps forwards or backwards. */

const redis = useRedis(test);

const preAdmit = (
  accountId: string,
  claimHash: string | null = null,
  slots = 1,
): Promise<PreAdmissionResult> =>
  runPreAdmission(redis(), { accountId, keyHash: testKeyHash, slots, claimHash });

/** Makes the window look as if Redis's clock had stepped by this much: forwards, or backwards if negative. */
async function stepClock(accountId: string, bySeconds: number): Promise<void> {
  const key = redisKeys.rpmWindow(accountId);
  const buckets = await redis().lrange(key, 0, -1);
  if (buckets.length === 0) return;
  const shifted = buckets.map((bucket) => {
    const [second, slots] = bucket.split(':');
    return `${Number(second) - bySeconds}:${slots}`;
  });
  await redis().del(key);
  await redis().rpush(key, ...shifted);
}

const readUsed = async (accountId: string): Promise<number> =>
  Number(await redis().hget(redisKeys.account(accountId), 'win'));

for (const { step, bySeconds } of [
  { step: 'an hour back', bySeconds: -3_600 },
  { step: 'two seconds back', bySeconds: -2 },
  { step: 'an hour forward', bySeconds: 3_600 },
]) {
  test(`if the clock steps ${step}, the account is not locked out, and its limit applies afterwards`, async (t) => {
    const id = await createHotAccount(redis(), 0n, { rpm: 3 });
    for (let i = 0; i < 3; i++) await runAdmission(redis(), admission(id));
    t.is((await runAdmission(redis(), admission(id))).outcome, 'rate_limited');
    await stepClock(id, bySeconds);
    for (let i = 0; i < 3; i++) t.is((await runAdmission(redis(), admission(id))).outcome, 'ok');
    const refused = await runAdmission(redis(), admission(id));
    t.true(refused.outcome === 'rate_limited' && refused.retryAfterMs <= 60_000);
    t.is(await readUsed(id), 3);
  });
}

test('if the clock steps back and forth, each step admits at most one more full window of requests', async (t) => {
  const id = await createHotAccount(redis(), 0n, { rpm: 2 });
  const fill = async (): Promise<void> => {
    for (const outcome of ['ok', 'ok', 'rate_limited'] as const)
      t.is((await runAdmission(redis(), admission(id))).outcome, outcome);
  };
  await fill();
  await stepClock(id, 3_600);
  await fill();
  await stepClock(id, -3_600);
  await fill();
  t.is(await readUsed(id), 2, 'slots that were dropped do not come back');
});

test('a request uses its slots only once: the admission does not add the slots of its pre-admission again', async (t) => {
  const id = await createHotAccount(redis(), 0n, { rpm: 10 });
  t.like(await preAdmit(id), { outcome: 'ok', rateLimit: { remaining: 9 } });
  t.like(await runAdmission(redis(), admission(id, { slots: 4, slotsTaken: 1 })), {
    outcome: 'ok',
    rateLimit: { remaining: 6 },
  });
  t.like(await preAdmit(id), { rateLimit: { remaining: 5 } });
  t.like(await runAdmission(redis(), admission(id, { slots: 1, slotsTaken: 1 })), {
    rateLimit: { remaining: 5 },
  });
  // Other requests may fill the limit before the body arrives: a request that already has its slots is admitted.
  await runAdmission(redis(), admission(id, { slots: 5 }));
  t.like(await runAdmission(redis(), admission(id, { slots: 1, slotsTaken: 1 })), { outcome: 'ok' });
  t.like(await runAdmission(redis(), admission(id, { slots: 2, slotsTaken: 1 })), {
    outcome: 'rate_limited',
  });
  t.is(await readUsed(id), 10);
});

test('a request that needs more slots than the limit uses the whole limit, with and without a pre-admission', async (t) => {
  for (const slotsTaken of [0, 1]) {
    const id = await createHotAccount(redis(), 0n, { rpm: 5 });
    if (slotsTaken === 1) await preAdmit(id);
    t.like(await runAdmission(redis(), admission(id, { slots: 50, slotsTaken })), {
      outcome: 'ok',
      rateLimit: { remaining: 0 },
    });
  }
});

test('a pre-admission uses all the slots that its model needs, at most the limit, or none, and reports how many', async (t) => {
  const id = await createHotAccount(redis(), 0n, { rpm: 10 });
  t.like(await preAdmit(id, null, 6), { outcome: 'ok', slotsTaken: 6, rateLimit: { remaining: 4 } });
  t.is((await preAdmit(id, null, 6)).outcome, 'rate_limited');
  t.is(await readUsed(id), 6);
  t.like(await runAdmission(redis(), admission(id, { slots: 6, slotsTaken: 6 })), { outcome: 'ok' });
  t.is(await readUsed(id), 6);
  const small = await createHotAccount(redis(), 0n, { rpm: 5 });
  t.like(await preAdmit(small, null, 50), { outcome: 'ok', slotsTaken: 5, rateLimit: { remaining: 0 } });
});

test('a pre-admission of zero slots uses none, and is rejected if none is available', async (t) => {
  const id = await createHotAccount(redis(), 0n, { rpm: 4 });
  await runAdmission(redis(), admission(id, { slots: 3 }));
  for (let i = 0; i < 3; i++) {
    t.like(await preAdmit(id, null, 0), { outcome: 'ok', slotsTaken: 0, rateLimit: { remaining: 1 } });
  }
  t.is(await readUsed(id), 3);
  await runAdmission(redis(), admission(id));
  t.is((await preAdmit(id, null, 0)).outcome, 'rate_limited');
});

test('a limit of zero admits nothing', async (t) => {
  const id = await createHotAccount(redis(), 0n, { rpm: 0 });
  t.is((await preAdmit(id)).outcome, 'rate_limited');
  t.is((await runAdmission(redis(), admission(id))).outcome, 'rate_limited');
});

test('a pre-admission reports what the account can spend, and rejects a request for the same reasons as the admission', async (t) => {
  const id = await createHotAccount(redis(), 500n, { rpm: 3, free: 2 });
  await runAdmission(redis(), admission(id, { fixedNano: 200n }));
  const claim = createIdempotencyClaim(randomUUID(), '/', {});
  t.like(await preAdmit(id, claim.keyHash), { spendableNano: 300n, freeRequests: 2, isReplay: false });
  await runAdmission(redis(), admission(id, { freeAllowed: true, claim }));
  t.is((await preAdmit(id)).outcome, 'rate_limited');
  await redis().hset(redisKeys.account(id), 'rpm', '9');
  t.like(await preAdmit(id, claim.keyHash), { spendableNano: 300n, freeRequests: 1, isReplay: true });
  await redis().hset(redisKeys.account(id), 'key', 'other');
  t.is((await preAdmit(id)).outcome, 'revoked');
  await redis().hset(redisKeys.account(id), 'ban', '1');
  t.is((await preAdmit(id)).outcome, 'banned');
  t.is((await preAdmit(randomUUID())).outcome, 'unknown');
});

/**
 * The clock steps by multiples of seven seconds. No multiple is 60, so the second or two that a run takes cannot move
 * a bucket across the end of the window.
 */
const seven = 7;
const step = fc.oneof(
  fc.record({
    kind: fc.constant('admit' as const),
    slots: fc.integer({ min: 1, max: 12 }),
    claim: fc.nat(2),
  }),
  fc.record({ kind: fc.constant('large' as const), slots: fc.integer({ min: 1, max: 12 }) }),
  fc.record({ kind: fc.constant('clock' as const), sevens: fc.integer({ min: -3, max: 9 }) }),
);

/** A simple model of the window: how many slots were used, and how long ago. */
class WindowModel {
  readonly #limit: number;
  #buckets: { age: number; slots: number }[] = [];

  constructor(limit: number) {
    this.#limit = limit;
  }

  get used(): number {
    return this.#buckets.reduce((sum, { slots }) => sum + slots, 0);
  }

  stepClock(bySeconds: number): void {
    for (const bucket of this.#buckets) bucket.age += bySeconds;
  }

  /** Uses the slots that have not been used yet. @returns how many remain; null if there were too few */
  take(slots: number, taken: number): number | null {
    this.#buckets = this.#buckets.filter(({ age }) => age >= 0 && age < 60);
    const needed = Math.min(slots, this.#limit) - taken;
    if (needed > 0) {
      if (this.used + needed > this.#limit) return null;
      this.#buckets.push({ age: 0, slots: needed });
    }
    return this.#limit - this.used;
  }
}

test('for any requests and clock steps, slots are counted exactly and `win` is their sum', async (t) => {
  const limit = 10;
  const remainingOf = (answer: { outcome: string; rateLimit?: { remaining: number } }): number | null =>
    answer.outcome === 'rate_limited' ? null : answer.rateLimit!.remaining;
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 30 }), async (steps) => {
      const id = await createHotAccount(redis(), 0n, { rpm: limit });
      const model = new WindowModel(limit);
      const check = (remaining: number | null, expected: number | null): void => {
        if (remaining !== expected) throw new Error(`${remaining} slots remain, not ${expected}`);
      };
      for (const one of steps) {
        if (one.kind === 'clock') {
          await stepClock(id, one.sevens * seven);
          model.stepClock(one.sevens * seven);
          continue;
        }
        const isLarge = one.kind === 'large';
        if (isLarge) {
          const remaining = remainingOf(await preAdmit(id));
          check(remaining, model.take(1, 0));
          if (remaining === null) continue;
        }
        // Includes replays: they use slots like any other request.
        const claim = isLarge ? null : createIdempotencyClaim(`key ${one.claim}`, '/', {});
        const request = admission(id, { slots: one.slots, slotsTaken: isLarge ? 1 : 0, claim });
        check(remainingOf(await runAdmission(redis(), request)), model.take(one.slots, isLarge ? 1 : 0));
        const used = await readUsed(id);
        if (used !== model.used) throw new Error(`win is ${used}, not ${model.used}`);
      }
    }),
    { numRuns: 200 },
  );
  t.pass();
});
