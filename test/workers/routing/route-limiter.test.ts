import { randomUUID } from 'node:crypto';
import { setMaxListeners } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import test, { type ExecutionContext } from 'ava';
import { breakerRules } from '../../../shared/routing/breaker-rules.ts';
import type { CallSlot } from '../../../shared/routing/acquire-script.ts';
import { runRenewal } from '../../../shared/routing/renew-script.ts';
import { RouteStateStore } from '../../../shared/routing/route-state-store.ts';
import { listCandidates } from '../../../shared/routing/route-candidate.ts';
import type { RedisClient } from '../../../shared/redis/redis-client.ts';
import { createLogger } from '../../../shared/runtime/logger.ts';
import { orderCandidates } from '../../../workers/routing/order-candidates.ts';
import { RouteLimiter } from '../../../workers/routing/route-limiter.ts';
import { redisKeys } from '../../../shared/redis/redis-keys.ts';
import { findKeys } from '../../support/all-of-redis.ts';
import { createRoute } from '../../support/routing.ts';
import { useRedis } from '../../support/use-redis.ts';
import { waitFor } from '../../support/wait-for.ts';

/** The limiter of several workers, whose state in Redis applies to all of them. */

const redis = useRedis(test);
const log = createLogger('test', 'silent');
/** Long enough for a busy machine to renew it in time. */
const leaseMs = 1_500;
const waitOptions = (more: object = {}) => ({
  accountIds: () => ['account'],
  signal: new AbortController().signal,
  deadlineAtMs: Date.now() + 20_000,
  waitLimits: { keyMs: 0, breakerMs: 0 },
  ...more,
});

function createLimiter(t: ExecutionContext, leaseMs?: number): RouteLimiter {
  const limiter = new RouteLimiter(redis(), randomUUID(), log, leaseMs);
  t.teardown(() => limiter.stop());
  return limiter;
}

async function readWaiting(routeId: string): Promise<string[]> {
  const key = redisKeys.waitingFor(redisKeys.callsOfUpstream(`upstream-of-${routeId}`));
  return await redis().zrange(key, '0', '-1');
}

/** Resolves when the only slot of an upstream has been held beyond the initial duration of its lease. */
async function waitForRenewal(upstream: string, leaseMs: number): Promise<void> {
  const key = redisKeys.callsOfUpstream(upstream);
  const readEndMs = async (): Promise<number> =>
    Number((await redis().zrange(key, '0', '0', 'WITHSCORES'))[1]);
  const firstEndMs = await readEndMs();
  await waitFor('the lease to be renewed', async () => (await readEndMs()) > firstEndMs + leaseMs);
}

async function acquireAll(
  limiters: readonly RouteLimiter[],
  candidates: Parameters<RouteLimiter['acquire']>[0],
  times: number,
) {
  const grants: CallSlot[] = [];
  for (let i = 0; i < times; i++)
    grants.push((await limiters[i % limiters.length]!.acquire(candidates, waitOptions()))!);
  return grants;
}

test('together, workers have no more calls in flight than an upstream, a key or a route allows', async (t) => {
  const limiters = [createLimiter(t), createLimiter(t), createLimiter(t)];
  const cases = [
    { route: createRoute('of-upstream', { maxConcurrency: 3 }), most: 3 },
    { route: createRoute('of-route', { routeConcurrency: 2 }), most: 2 },
    { route: createRoute('of-keys', { apiKeys: ['a', 'b'], maxConcurrencyPerKey: 2 }), most: 4 },
  ];
  for (const { route, most } of cases) {
    const candidates = listCandidates(route);
    let inFlight = 0;
    let highest = 0;
    const byKey = new Map<string, number>();
    await Promise.all(
      Array.from({ length: 60 }, async (_, i) => {
        const limiter = limiters[i % limiters.length]!;
        const slot = (await limiter.acquire(candidates, waitOptions()))!;
        inFlight += 1;
        highest = Math.max(highest, inFlight);
        const { fingerprint } = slot.candidate;
        byKey.set(fingerprint, (byKey.get(fingerprint) ?? 0) + 1);
        await delay(2);
        inFlight -= 1;
        limiter.release(slot, 'ok');
      }),
    );
    t.is(highest, most, route.id);
    if (route.upstream.apiKeys.length > 1) t.is(byKey.size, 2, 'both keys were used');
  }
});

test('waiting calls are granted in the order of arrival', async (t) => {
  const limiter = createLimiter(t);
  const candidates = listCandidates(createRoute('in-order', { maxConcurrency: 1 }));
  const first = (await limiter.acquire(candidates, waitOptions()))!;
  const order: number[] = [];
  const waiting = Array.from({ length: 5 }, async (_, i) => {
    const slot = (await limiter.acquire(candidates, waitOptions()))!;
    order.push(i);
    limiter.release(slot, 'ok');
  });
  limiter.release(first, 'ok');
  await Promise.all(waiting);
  t.deepEqual(order, [0, 1, 2, 3, 4]);
});

test('a limiter that shuts down frees the slots of its calls immediately, and grants no more', async (t) => {
  const [stopping, other] = [createLimiter(t), createLimiter(t)];
  const route = createRoute('handed-back', { maxConcurrency: 2 });
  const candidates = listCandidates(route);
  await acquireAll([stopping], candidates, 2);
  const leaving = new AbortController();
  const limits = waitOptions({ signal: leaving.signal, accountIds: () => ['ending'] });
  const entered: CallSlot[] = [];
  const acquire = async (): Promise<void> => {
    const slot = await stopping.acquire(candidates, limits).catch(() => null);
    if (slot !== null) entered.push(slot);
  };
  const waiting = acquire();
  await waitFor('the call to wait', async () => (await readWaiting(route.id)).length === 1);
  const handed = stopping.handBack();
  // It arrives, or was requested, while the limiter is shutting down.
  const late = acquire();
  await handed;
  const slots = redisKeys.callsOfUpstream(route.upstream.name);
  t.is(await redis().zcard(slots), 0);
  for (const slot of await acquireAll([other], candidates, 2)) other.release(slot, 'ok');
  leaving.abort();
  await Promise.all([waiting, late]);
  t.deepEqual(entered, []);
});

test('accounts take turns at the limiter, however many calls of one of them are waiting', async (t) => {
  const limiter = createLimiter(t);
  const candidates = listCandidates(createRoute('in-turns', { maxConcurrency: 1 }));
  const first = (await limiter.acquire(candidates, waitOptions({ accountIds: () => ['other'] })))!;
  const order: string[] = [];
  const wait = async (accountId: string): Promise<void> => {
    const slot = (await limiter.acquire(candidates, waitOptions({ accountIds: () => [accountId] })))!;
    t.is(slot.accountId, accountId);
    order.push(accountId);
    limiter.release(slot, 'ok');
  };
  const waiting = ['many', 'many', 'many', 'many', 'few', 'few'].map(wait);
  await waitFor('all to wait', async () => (await readWaiting('in-turns')).length === 2);
  limiter.release(first, 'ok');
  await Promise.all(waiting);
  t.deepEqual(order, ['many', 'few', 'many', 'few', 'many', 'many']);
});

test('a call for several accounts is granted a slot that any of them may have', async (t) => {
  const limiter = createLimiter(t);
  const candidates = listCandidates(createRoute('of-several', { maxConcurrency: 8 }));
  const acquire = async (...accounts: string[]): Promise<CallSlot> =>
    (await limiter.acquire(candidates, waitOptions({ accountIds: () => accounts })))!;
  limiter.release(await acquire('few'), 'ok');
  const many = [];
  for (let i = 0; i < 7; i++) many.push(await acquire('many'));
  // The last slot is reserved for accounts that used one recently.
  const accounts = ['many'];
  const waiting = limiter.acquire(candidates, waitOptions({ accountIds: () => accounts }));
  await waitFor('the account to wait', async () => (await readWaiting('of-several')).includes('many'));
  accounts.push('few');
  const slot = (await waiting)!;
  t.is(slot.accountId, 'few');
  for (const one of [slot, ...many]) limiter.release(one, 'ok');
});

test('while another account waits at any worker, an account has at most half of the slots; alone it may use all', async (t) => {
  const [limiter, other] = [createLimiter(t), createLimiter(t)];
  const candidates = listCandidates(createRoute('shared', { maxConcurrency: 4 }));
  const acquire = async (by: RouteLimiter, accountId: string): Promise<CallSlot> =>
    (await by.acquire(candidates, waitOptions({ accountIds: () => [accountId] })))!;
  const flood = await Promise.all(Array.from({ length: 4 }, () => acquire(limiter, 'many')));
  t.is(flood.length, 4, 'with no other account waiting it has all of them');
  const granted: CallSlot[] = [];
  const wait = async (by: RouteLimiter, accountId: string): Promise<void> => {
    granted.push(await acquire(by, accountId));
  };
  const waiting = [
    ...Array.from({ length: 4 }, () => wait(limiter, 'many')),
    wait(other, 'few'),
    wait(other, 'few'),
  ];
  await waitFor('both to wait', async () => (await readWaiting('shared')).length === 2);
  for (const accountId of ['few', 'few', 'many']) {
    const before = granted.length;
    limiter.release(flood.pop()!, 'ok');
    await waitFor('the next grant', () => granted.length > before);
    t.is(granted.at(-1)!.accountId, accountId);
    t.is(granted.length, before + 1);
  }
  for (let left = 0; left < 6; left++) {
    await waitFor('one that was granted', () => granted.length > left);
    limiter.release(granted[left]!, 'ok');
  }
  await Promise.all(waiting);
});

test('if another account used slots recently, an account with half of them leaves the last eighth free for it', async (t) => {
  const limiter = createLimiter(t);
  const candidates = listCandidates(createRoute('kept-free', { maxConcurrency: 16 }));
  const acquire = async (accountId: string, deadlineAtMs = Date.now() + 20_000): Promise<CallSlot> =>
    (await limiter.acquire(candidates, waitOptions({ accountIds: () => [accountId], deadlineAtMs })))!;
  limiter.release(await acquire('few'), 'ok');
  const held = [];
  for (let i = 0; i < 14; i++) held.push(await acquire('many'));
  await t.throwsAsync(acquire('many', Date.now() + 300), { code: 'deadline_exceeded' });
  const last = [await acquire('few'), await acquire('few')];
  for (const slot of [...held, ...last]) limiter.release(slot, 'ok');
});

test('a model does not wait for a slot behind a busy model of the same upstream', async (t) => {
  const limiter = createLimiter(t);
  const [busy, quiet] = ['busy', 'quiet'].map((id) =>
    listCandidates(createRoute(id, { upstream: 'of-both', maxConcurrency: 4 })),
  );
  const over = new AbortController();
  setMaxListeners(0, over.signal);
  let busyGrants = 0;
  const keepCalling = async (accountId: string): Promise<void> => {
    while (!over.signal.aborted) {
      const slot = (await limiter.acquire(
        busy!,
        waitOptions({ accountIds: () => [accountId], signal: over.signal }),
      ))!;
      busyGrants += 1;
      await delay(100 + Math.random() * 100);
      limiter.release(slot, 'ok');
    }
  };
  const crowd = Array.from('abcd').flatMap((id) => Array.from({ length: 6 }, () => keepCalling(id)));
  await waitFor('the crowd to fill the slots', () => busyGrants > 4);
  const passed: number[] = [];
  for (let i = 0; i < 10; i++) {
    const before = busyGrants;
    const slot = (await limiter.acquire(quiet!, waitOptions({ accountIds: () => ['quiet'] })))!;
    passed.push(busyGrants - before);
    await delay(20);
    limiter.release(slot, 'ok');
    await delay(50);
  }
  over.abort(new Error('over'));
  await Promise.allSettled(crowd);
  // Behind the busy model some waited for hundreds of its calls.
  t.true(Math.max(...passed) < 30, passed.join(' '));
});

test('with an odd number of slots, none stays free while two accounts wait', async (t) => {
  const limiter = createLimiter(t);
  const candidates = listCandidates(createRoute('odd', { maxConcurrency: 3 }));
  const grants: CallSlot[] = [];
  const acquire = async (accountId: string): Promise<void> => {
    grants.push((await limiter.acquire(candidates, waitOptions({ accountIds: () => [accountId] })))!);
  };
  await Promise.all(['one', 'one', 'two'].map(acquire));
  const waiting = ['one', 'one', 'two', 'two'].map(acquire);
  await waitFor('both to wait', async () => (await readWaiting('odd')).length === 2);
  limiter.release(grants[0]!, 'ok');
  await waitFor('the slot in use', () => grants.length === 4);
  t.is(grants.length, 4);
  for (let left = 1; left < 7; left++) {
    await waitFor('one that was granted', () => grants.length > left);
    limiter.release(grants[left]!, 'ok');
  }
  await Promise.all(waiting);
});

test('a call knows whether another account is waiting for its slot', async (t) => {
  const limiter = createLimiter(t);
  const candidates = listCandidates(createRoute('contested', { maxConcurrency: 1 }));
  const slot = (await limiter.acquire(candidates, waitOptions({ accountIds: () => ['holder'] })))!;
  const own = limiter.acquire(
    candidates,
    waitOptions({ accountIds: () => ['holder'], deadlineAtMs: Date.now() + 300 }),
  );
  await t.throwsAsync(own, { code: 'deadline_exceeded' });
  t.false(await limiter.isContested(slot), 'its own calls do not count');
  const waiting = limiter.acquire(candidates, waitOptions({ accountIds: () => ['other'] }));
  await waitFor('the other account', () => limiter.isContested(slot));
  limiter.release(slot, 'ok');
  const next = (await waiting)!;
  // The first account still counts as waiting for half a second.
  await waitFor('no waiting account', async () => !(await limiter.isContested(next)));
});

test('a slot is not lost when a caller leaves the wait queue or its time is up', async (t) => {
  const limiter = createLimiter(t);
  const candidates = listCandidates(createRoute('leaving', { maxConcurrency: 1 }));
  const first = (await limiter.acquire(candidates, waitOptions()))!;
  const leaving = new AbortController();
  const reason = new Error('the caller left');
  const left = t.throwsAsync(limiter.acquire(candidates, waitOptions({ signal: leaving.signal })));
  const late = t.throwsAsync(limiter.acquire(candidates, waitOptions({ deadlineAtMs: Date.now() + 50 })));
  leaving.abort(reason);
  t.is(await left, reason);
  t.is(((await late) as { code?: string }).code, 'deadline_exceeded');
  limiter.release(first, 'ok');
  t.truthy(await limiter.acquire(candidates, waitOptions()));
});

test('the slots of a dead worker are freed when its leases have expired, and not before', async (t) => {
  const dead = new RouteLimiter(redis(), randomUUID(), log, leaseMs);
  const route = createRoute('dying', { maxConcurrency: 1 });
  const candidates = listCandidates(route);
  t.truthy(await dead.acquire(candidates, waitOptions()));
  const renewed = createLimiter(t);
  await waitForRenewal(route.upstream.name, leaseMs);
  await t.throwsAsync(renewed.acquire(candidates, waitOptions({ deadlineAtMs: Date.now() + 50 })));
  await dead.stop();
  t.truthy(await renewed.acquire(candidates, waitOptions()));
});

test('a breaker opens for all workers immediately because of the failure rate, and not because of a few failures', async (t) => {
  const limiters = [createLimiter(t), createLimiter(t)];
  const candidates = listCandidates(createRoute('failing'));
  const few = await acquireAll(limiters, candidates, breakerRules.minCalls - 1);
  for (const slot of few) limiters[0]!.release(slot, 'bad');
  // One more is still granted, and is the one that reaches the threshold.
  const last = (await limiters[1]!.acquire(candidates, waitOptions()))!;
  t.false(last.isProbe);
  limiters[1]!.release(last, 'bad');
  await limiters[1]!.stop();
  for (const limiter of limiters) t.is(await limiter.acquire(candidates, waitOptions()), null);
});

test('a route with a failure rate below one half stays open, and key errors do not count', async (t) => {
  const limiter = createLimiter(t);
  const candidates = listCandidates(createRoute('middling'));
  const grants = await acquireAll([limiter], candidates, 60);
  grants.forEach((slot, i) => limiter.release(slot, i % 5 === 0 ? 'bad' : i % 5 === 1 ? 'none' : 'ok'));
  await limiter.stop();
  t.truthy(await limiter.acquire(candidates, waitOptions()));
});

test('an open breaker lets one probe through: its failure doubles the pause, its success closes the breaker', async (t) => {
  const limiters = [createLimiter(t), createLimiter(t)];
  const candidates = listCandidates(createRoute('healing'));
  const [limiter, other] = [limiters[0]!, limiters[1]!];
  for (const slot of await acquireAll(limiters, candidates, breakerRules.minCalls))
    limiter.release(slot, 'bad');
  const wait = waitOptions({ waitLimits: { keyMs: 10_000, breakerMs: 10_000 } });
  const openedAt = Date.now();
  const probe = (await limiter.acquire(candidates, wait))!;
  t.true(probe.isProbe);
  t.true(Date.now() - openedAt >= breakerRules.firstPauseMs - 50);
  t.is(await other.acquire(candidates, waitOptions()), null, 'one probe at a time');
  limiter.release(probe, 'bad');
  await limiter.stop();
  const failedAt = Date.now();
  const second = (await other.acquire(candidates, wait))!;
  t.true(second.isProbe);
  t.true(Date.now() - failedAt >= breakerRules.firstPauseMs * 2 - 50);
  // Other waiting calls are granted as soon as the route has recovered.
  const waiting = [
    limiter.acquire(candidates, wait),
    limiter.acquire(candidates, wait),
    other.acquire(candidates, wait),
  ];
  other.release(second, 'ok');
  for (const slot of await Promise.all(waiting)) t.is(slot?.isProbe, false);
});

test('a probe whose caller disconnected, or whose worker died, leaves the probe to another call', async (t) => {
  const limiter = createLimiter(t);
  const candidates = listCandidates(createRoute('abandoned'));
  for (const slot of await acquireAll([limiter], candidates, breakerRules.minCalls))
    limiter.release(slot, 'bad');
  const wait = waitOptions({ waitLimits: { keyMs: 15_000, breakerMs: 15_000 } });
  const left = (await limiter.acquire(candidates, wait))!;
  limiter.release(left, 'none');
  const dead = (await limiter.acquire(candidates, wait))!;
  t.true(dead.isProbe);
  // No outcome of that one is ever reported.
  const third = (await limiter.acquire(candidates, wait))!;
  t.true(third.isProbe);
});

test("if Redis's clock steps back by an hour, no breaker stays open, and no dead worker keeps its slots", async (t) => {
  const limiter = createLimiter(t, 300);
  const candidates = listCandidates(createRoute('stepped', { maxConcurrency: 1 }));
  const { route } = candidates[0]!;
  const [second] = await redis().time();
  const anHourAhead = (Number(second) + 3_600) * 1_000;
  await redis().hset(
    redisKeys.routeHealth(route.id),
    'until',
    anHourAhead,
    'probe',
    anHourAhead,
    'pauses',
    1,
  );
  await redis().zadd(redisKeys.failedOn(route.id), anHourAhead, 'account');
  await redis().zadd(redisKeys.callsOfUpstream(route.upstream.name), anHourAhead, 'other|dead');
  await redis().zadd(
    redisKeys.waitingFor(redisKeys.callsOfUpstream(route.upstream.name)),
    anHourAhead,
    'other',
  );
  const slot = await limiter.acquire(candidates, waitOptions());
  t.is(slot?.isProbe, true);
  limiter.release(slot!, 'ok');
  await limiter.stop();
  t.is((await limiter.acquire(candidates, waitOptions()))?.isProbe, false, 'the breaker is closed');
});

test('a key on cooldown is skipped by all workers, on its route or everywhere, until its time is up', async (t) => {
  const limiters = [createLimiter(t), createLimiter(t)];
  const [limiter, other] = [limiters[0]!, limiters[1]!];
  const upstream = 'shared-upstream';
  const route = createRoute('first-route', { upstream, apiKeys: ['good', 'poor'] });
  const sibling = createRoute('second-route', { upstream, apiKeys: ['good', 'poor'] });
  const poor = listCandidates(route)[1]!;
  const poorElsewhere = listCandidates(sibling)[1]!;

  const limited = (await limiter.acquire([poor], waitOptions()))!;
  limiter.release(limited, 'none', { scope: 'keyOnRoute', forMs: 300, reason: 'over its limit' });
  await limiter.stop();
  t.is(await other.acquire([poor], waitOptions()), null);
  t.is((await other.acquire([poor, listCandidates(route)[0]!], waitOptions()))?.candidate.apiKey, 'good');
  t.truthy(await other.acquire([poorElsewhere], waitOptions()));
  // Calls whose wait limit allows it wait for the key, and no longer than specified.
  t.truthy(await other.acquire([poor], waitOptions({ waitLimits: { keyMs: 1_000, breakerMs: 1_000 } })));

  const refused = (await other.acquire([poor], waitOptions()))!;
  other.release(refused, 'none', { scope: 'key', forMs: 60_000, reason: 'refused with 401' });
  await other.stop();
  t.is(await limiter.acquire([poor], waitOptions()), null);
  t.is(await limiter.acquire([poorElsewhere], waitOptions()), null);
  t.truthy(await limiter.acquire(listCandidates(sibling), waitOptions()));
});

test('rate-limited calls are counted for the stats, and open no breaker', async (t) => {
  const limiter = createLimiter(t);
  const candidates = listCandidates(createRoute('limited'));
  const grants = await acquireAll([limiter], candidates, 2 * breakerRules.minCalls);
  for (const [i, slot] of grants.entries()) limiter.release(slot, i % 4 === 0 ? 'ok' : 'limited');
  await limiter.stop();
  const store = new RouteStateStore(redis());
  const counts = { succeeded: breakerRules.minCalls / 2, failed: 0 };
  t.like(await store.read(candidates[0]!, Date.now()), {
    breaker: 'closed',
    ...counts,
    rateLimited: (breakerRules.minCalls * 3) / 2,
  });
  const windowMs = breakerRules.bucketMs * (breakerRules.buckets + 1);
  t.like(await store.read(candidates[0]!, Date.now() + windowMs), {
    succeeded: 0,
    failed: 0,
    rateLimited: 0,
  });
});

test('a probe that is rate-limited leaves the probe to another call', async (t) => {
  const limiter = createLimiter(t);
  const candidates = listCandidates(createRoute('limited-probe'));
  for (const slot of await acquireAll([limiter], candidates, breakerRules.minCalls))
    limiter.release(slot, 'bad');
  const wait = waitOptions({ waitLimits: { keyMs: 15_000, breakerMs: 15_000 } });
  for (let i = 0; i < 2; i++) {
    const probe = (await limiter.acquire(candidates, wait))!;
    t.true(probe.isProbe);
    limiter.release(probe, 'limited');
  }
});

test('no key is stored in Redis in plain text', async (t) => {
  const limiter = createLimiter(t);
  const secret = 'sk-very-secret-key-123456';
  const [candidate] = listCandidates(
    createRoute('secretive', { apiKeys: [secret], maxConcurrencyPerKey: 3 }),
  );
  const slot = (await limiter.acquire([candidate!], waitOptions()))!;
  limiter.release(slot, 'none', { scope: 'key', forMs: 60_000, reason: 'refused with 401' });
  await limiter.stop();
  t.is(await limiter.acquire([candidate!], waitOptions()), null);
  const names = await findKeys(redis(), 'mg:*');
  t.true(names.length > 0);
  for (const name of names) {
    t.false(name.includes(secret));
    const type = await redis().type(name);
    const fields =
      type === 'hash'
        ? await redis().hgetall(name)
        : type === 'zset'
          ? await redis().zrange(name, '0', '-1')
          : [];
    const text = JSON.stringify(fields);
    t.false(text.includes(secret), name);
  }
});

test('a call may wait for a key for as long as its vendor specifies, but for a breaker only within its own limit', async (t) => {
  const limiter = createLimiter(t);
  const [candidate] = listCandidates(createRoute('patient', { apiKeys: ['a'] }));
  const only = { keyMs: 2_000, breakerMs: 100 };
  limiter.release((await limiter.acquire([candidate!], waitOptions()))!, 'none', {
    scope: 'keyOnRoute',
    forMs: 500,
    reason: 'over its limit',
  });
  await limiter.stop();
  t.truthy(await limiter.acquire([candidate!], waitOptions({ waitLimits: only })));
  for (const slot of await acquireAll([limiter], [candidate!], breakerRules.minCalls))
    limiter.release(slot, 'bad');
  await limiter.stop();
  t.is(await limiter.acquire([candidate!], waitOptions({ waitLimits: only })), null);
});

test('a vendor’s rate limit does not fail calls that have already waited long in the queue', async (t) => {
  const limiter = createLimiter(t);
  const candidates = listCandidates(createRoute('queue-then-limit', { apiKeys: ['k'], maxConcurrency: 1 }));
  const first = (await limiter.acquire(candidates, waitOptions()))!;
  const waitLimits = { keyMs: 600, breakerMs: 0 };
  const waiting = limiter.acquire(candidates, waitOptions({ waitLimits }));
  await delay(700);
  limiter.release(first, 'none', { scope: 'keyOnRoute', forMs: 200, reason: 'over its limit' });
  const slot = await waiting;
  t.not(slot, null);
  limiter.release(slot!, 'ok');
});

test('the one working key among many on cooldown is found', async (t) => {
  const limiter = createLimiter(t);
  const route = createRoute('many-keys', { apiKeys: Array.from({ length: 60 }, (_, i) => `key-${i}`) });
  const [good, ...bad] = listCandidates(route);
  for (const candidate of bad) {
    const slot = (await limiter.acquire([candidate], waitOptions()))!;
    limiter.release(slot, 'none', { scope: 'key', forMs: 60_000, reason: 'out of money' });
  }
  for (let i = 0; i < 10; i++) {
    const slot = await limiter.acquire(orderCandidates([route], [], Math.random), waitOptions());
    t.is(slot?.candidate.apiKey, good!.apiKey);
    if (slot !== null) limiter.release(slot, 'ok');
  }
});

test.serial('a worker whose clock is wrong keeps its slots, and no longer than others', async (t) => {
  const realNow = Date.now;
  t.teardown(() => {
    Date.now = realNow;
  });
  for (const wrongMs of [-60_000, 60_000]) {
    const limiter = createLimiter(t, leaseMs);
    const other = createLimiter(t);
    const route = createRoute(`wrong-clock ${wrongMs}`, { maxConcurrency: 1 });
    const candidates = listCandidates(route);
    Date.now = () => realNow() + wrongMs;
    t.not(await limiter.acquire(candidates, waitOptions()), null);
    await waitForRenewal(route.upstream.name, leaseMs);
    Date.now = realNow;
    const deadlineAtMs = Date.now() + 50;
    await t.throwsAsync(other.acquire(candidates, waitOptions({ deadlineAtMs })), {
      message: /time|deadline/i,
    });
    // As if it had died: nothing renews its leases.
    await limiter.stop();
    const slot = (await other.acquire(candidates, waitOptions()))!;
    other.release(slot, 'ok');
  }
});

test('a renewal does not restore a slot that was released just before', async (t) => {
  const key = 'calls-of-a-test';
  await redis().script('FLUSH');
  await Promise.all([runRenewal(redis(), key, ['lease'], 5_000), redis().zrem(key, 'lease')]);
  t.is(await redis().zcard(key), 0);
});

/** The same Redis, whose script replies are lost; the scripts do not reach it either, unless they `arrive`. */
function createCutOff(arrive: boolean): { client: RedisClient; away: boolean } {
  const cut: { client: RedisClient; away: boolean } = { client: redis(), away: false };
  const lost = new Error('Connection is closed.');
  cut.client = new Proxy(redis(), {
    get(target, name) {
      const value = Reflect.get(target, name) as unknown;
      if (typeof value !== 'function') return value;
      const method = value.bind(target) as (...args: unknown[]) => Promise<unknown>;
      if (name !== 'evalsha' && name !== 'eval' && name !== 'zrem') return method;
      return async (...args: unknown[]) => {
        if (!cut.away) return await method(...args);
        if (arrive) await method(...args);
        throw lost;
      };
    },
  });
  return cut;
}

test('slots of calls that end while Redis is unavailable are free when it is back', async (t) => {
  const cut = createCutOff(false);
  const limiter = new RouteLimiter(cut.client, randomUUID(), log);
  const candidates = listCandidates(createRoute('ends-while-away', { maxConcurrency: 1 }));
  const slot = (await limiter.acquire(candidates, waitOptions()))!;
  cut.away = true;
  limiter.release(slot, 'ok');
  await delay(300);
  cut.away = false;
  const other = createLimiter(t);
  // Before its lease would have expired.
  const next = await other.acquire(candidates, waitOptions());
  t.not(next, null);
  other.release(next!, 'ok');
  await limiter.stop();
});

test('slots of a grant whose reply was lost are released', async (t) => {
  const cut = createCutOff(true);
  const limiter = new RouteLimiter(cut.client, randomUUID(), log);
  const candidates = listCandidates(createRoute('lost-answer', { maxConcurrency: 1 }));
  cut.away = true;
  const waiting = limiter.acquire(candidates, waitOptions());
  await delay(100);
  cut.away = false;
  // Before its lease would have expired.
  const slot = await waiting;
  t.not(slot, null);
  limiter.release(slot!, 'ok');
  await limiter.stop();
});

test('a probe that has started to respond lets other calls in before its end', async (t) => {
  const limiter = createLimiter(t);
  const other = createLimiter(t);
  const candidates = listCandidates(createRoute('long-answers'));
  for (const slot of await acquireAll([limiter], candidates, breakerRules.minCalls))
    limiter.release(slot, 'bad');
  const wait = waitOptions({ waitLimits: { keyMs: 0, breakerMs: 10_000 } });
  const probe = (await limiter.acquire(candidates, wait))!;
  t.true(probe.isProbe);
  t.is(await other.acquire(candidates, waitOptions()), null);
  const waiting = other.acquire(candidates, wait);
  limiter.confirm(probe);
  limiter.confirm(probe);
  t.is((await waiting)?.isProbe, false);
  // Its later outcome counts like that of any other call.
  limiter.release(probe, 'bad');
  await limiter.stop();
  t.truthy(await other.acquire(candidates, waitOptions()));
});
