import { randomUUID } from 'node:crypto';
import { once, setMaxListeners } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import test, { type ExecutionContext } from 'ava';
import type { Redis } from 'ioredis';
import { breakerRules } from '../../../shared/routing/breaker-rules.ts';
import type { CallSlot } from '../../../workers/routing/acquire-script.ts';
import { runRenewal } from '../../../workers/routing/renew-script.ts';
import { RouteStateStore } from '../../../shared/routing/route-state-store.ts';
import { listCandidates } from '../../../shared/routing/route-candidate.ts';
import type { RedisClient } from '../../../shared/platform/redis/redis-client.ts';
import { createLogger } from '../../../shared/platform/runtime/logger.ts';
import { orderCandidates } from '../../../workers/routing/order-candidates.ts';
import { RouteLimiter } from '../../../workers/routing/route-limiter.ts';
import { redisKeys } from '../../../shared/platform/redis/redis-keys.ts';
import { findKeys } from '../../support/all-of-redis.ts';
import { createRoute } from '../../support/routing.ts';
import { useRedis } from '../../support/use-redis.ts';
import { waitFor } from '../../support/wait-for.ts';

/** Limiters of several workers share their state in Redis. */

const redis = useRedis(test);
const log = createLogger('test', 'silent');
/** Lease duration: long enough to be renewed in time on a busy machine. */
const leaseMs = 1_500;
const acquireOptions = (more: object = {}) => ({
  accountIds: () => ['account'],
  signal: new AbortController().signal,
  deadlineAtMs: Date.now() + 20_000,
  waitLimits: { keyMs: 0, breakerMs: 0 },
  ...more,
});

function openLimiter(t: ExecutionContext, leaseMs?: number): RouteLimiter {
  const limiter = new RouteLimiter(redis(), randomUUID(), log, leaseMs === undefined ? {} : { leaseMs });
  t.teardown(() => limiter.stop());
  return limiter;
}

/** Counts the commands that a client sends or fails to send from now on. */
function countCommands(client: Redis): () => number {
  let sent = 0;
  const sendCommand = client.sendCommand.bind(client);
  client.sendCommand = (...command: Parameters<typeof sendCommand>) => {
    sent += 1;
    return sendCommand(...command);
  };
  return () => sent;
}

async function readWaiting(routeId: string): Promise<string[]> {
  const key = redisKeys.waitingFor(redisKeys.callsOfUpstream(`upstream-of-${routeId}`));
  return await redis().zrange(key, '0', '-1');
}

/** Resolves once the lease on the only slot of an upstream has outlived its first expiry through renewals. */
async function waitForRenewal(upstream: string, leaseMs: number): Promise<void> {
  const key = redisKeys.callsOfUpstream(upstream);
  const readExpiryMs = async (): Promise<number> =>
    Number((await redis().zrange(key, '0', '0', 'WITHSCORES'))[1]);
  const firstExpiryMs = await readExpiryMs();
  await waitFor('the lease to be renewed', async () => (await readExpiryMs()) > firstExpiryMs + leaseMs);
}

async function acquireAll(
  limiters: readonly RouteLimiter[],
  candidates: Parameters<RouteLimiter['acquire']>[0],
  times: number,
) {
  const grants: CallSlot[] = [];
  for (let i = 0; i < times; i++)
    grants.push((await limiters[i % limiters.length]!.acquire(candidates, acquireOptions()))!);
  return grants;
}

test('workers together stay within the concurrency limits of upstreams, keys and routes', async (t) => {
  const limiters = [openLimiter(t), openLimiter(t), openLimiter(t)];
  const cases = [
    { route: createRoute('of-upstream', { maxConcurrency: 3 }), limit: 3 },
    { route: createRoute('of-route', { routeConcurrency: 2 }), limit: 2 },
    { route: createRoute('of-keys', { apiKeys: ['a', 'b'], maxConcurrencyPerKey: 2 }), limit: 4 },
  ];
  for (const { route, limit } of cases) {
    const candidates = listCandidates(route);
    let inFlight = 0;
    let maxInFlight = 0;
    const byKey = new Map<string, number>();
    await Promise.all(
      Array.from({ length: 60 }, async (_, i) => {
        const limiter = limiters[i % limiters.length]!;
        const slot = (await limiter.acquire(candidates, acquireOptions()))!;
        inFlight += 1;
        maxInFlight = Math.max(maxInFlight, inFlight);
        const { fingerprint } = slot.candidate;
        byKey.set(fingerprint, (byKey.get(fingerprint) ?? 0) + 1);
        await delay(2);
        inFlight -= 1;
        limiter.release(slot, 'ok');
      }),
    );
    t.is(maxInFlight, limit, route.id);
    if (route.upstream.apiKeys.length > 1) t.is(byKey.size, 2, 'both keys were used');
  }
});

test('waiting calls get slots in the order they arrived', async (t) => {
  const limiter = openLimiter(t);
  const candidates = listCandidates(createRoute('in-order', { maxConcurrency: 1 }));
  const first = (await limiter.acquire(candidates, acquireOptions()))!;
  const order: number[] = [];
  const waiting = Array.from({ length: 5 }, async (_, i) => {
    const slot = (await limiter.acquire(candidates, acquireOptions()))!;
    order.push(i);
    limiter.release(slot, 'ok');
  });
  limiter.release(first, 'ok');
  await Promise.all(waiting);
  t.deepEqual(order, [0, 1, 2, 3, 4]);
});

test('a waiting call asks for a slot in the same write that releases it', async (t) => {
  const own = (redis() as Redis).duplicate();
  const limiter = new RouteLimiter(own, randomUUID(), log);
  t.teardown(async () => {
    await limiter.stop();
    own.disconnect();
  });
  const candidates = listCandidates(createRoute('same-write', { maxConcurrency: 1 }));
  const slot = (await limiter.acquire(candidates, acquireOptions()))!;
  const waiting = limiter.acquire(candidates, acquireOptions());
  await waitFor('the call to wait', async () => (await readWaiting('same-write')).length === 1);
  const countSent = countCommands(own);
  // Once only the ping was sent while its reply was on its way, the limiter has all of its replies and sleeps.
  let sentBefore: number;
  do {
    sentBefore = countSent();
    await own.ping();
  } while (countSent() !== sentBefore + 1);
  sentBefore = countSent();
  limiter.release(slot, 'ok');
  // Only microtasks run here, so no reply can arrive in the meantime.
  for (let i = 0; i < 50; i++) await Promise.resolve();
  t.is(countSent() - sentBefore, 2);
  limiter.release((await waiting)!, 'ok');
});

test('while Redis is unavailable, calls that end do not make waiting calls ask for slots', async (t) => {
  const own = (redis() as Redis).duplicate().on('error', () => undefined);
  const limiter = new RouteLimiter(own, randomUUID(), log);
  t.teardown(async () => {
    await limiter.stop();
    own.disconnect();
  });
  const held = await acquireAll([limiter], listCandidates(createRoute('held-in-outage')), 50);
  const candidates = listCandidates(createRoute('waited-in-outage', { maxConcurrency: 1 }));
  const slot = (await limiter.acquire(candidates, acquireOptions()))!;
  const waiting = limiter.acquire(candidates, acquireOptions());
  await waitFor('the call to wait', async () => (await readWaiting('waited-in-outage')).length === 1);
  own.disconnect(true);
  await once(own, 'close');
  const countSent = countCommands(own);
  for (const one of held) {
    limiter.release(one, 'ok');
    await Promise.resolve();
  }
  // One report for each of them, and a few for the call that waits.
  t.true(countSent() < held.length + 20, String(countSent()));
  limiter.release(slot, 'ok');
  limiter.release((await waiting)!, 'ok');
});

test('when a limiter returns all of its slots, they are free immediately and it acquires no more', async (t) => {
  const [stopping, other] = [openLimiter(t), openLimiter(t)];
  const route = createRoute('handed-back', { maxConcurrency: 2 });
  const candidates = listCandidates(route);
  await acquireAll([stopping], candidates, 2);
  const cancellation = new AbortController();
  const limits = acquireOptions({ signal: cancellation.signal, accountIds: () => ['ending'] });
  const granted: CallSlot[] = [];
  const acquire = async (): Promise<void> => {
    const slot = await stopping.acquire(candidates, limits).catch(() => null);
    if (slot !== null) granted.push(slot);
  };
  const waiting = acquire();
  await waitFor('the call to wait', async () => (await readWaiting(route.id)).length === 1);
  const handedBack = stopping.handBack();
  // This call acquires a slot, or waits for one, while the limiter returns its slots.
  const late = acquire();
  await handedBack;
  const slots = redisKeys.callsOfUpstream(route.upstream.name);
  t.is(await redis().zcard(slots), 0);
  for (const slot of await acquireAll([other], candidates, 2)) other.release(slot, 'ok');
  cancellation.abort();
  await Promise.all([waiting, late]);
  t.deepEqual(granted, []);
});

test('accounts take turns, even if one of them has more calls waiting', async (t) => {
  const limiter = openLimiter(t);
  const candidates = listCandidates(createRoute('in-turns', { maxConcurrency: 1 }));
  const first = (await limiter.acquire(candidates, acquireOptions({ accountIds: () => ['other'] })))!;
  const order: string[] = [];
  const wait = async (accountId: string): Promise<void> => {
    const slot = (await limiter.acquire(candidates, acquireOptions({ accountIds: () => [accountId] })))!;
    t.is(slot.accountId, accountId);
    order.push(accountId);
    limiter.release(slot, 'ok');
  };
  const waiting = ['many', 'many', 'many', 'many', 'few', 'few'].map(wait);
  await waitFor('both accounts to wait', async () => (await readWaiting('in-turns')).length === 2);
  limiter.release(first, 'ok');
  await Promise.all(waiting);
  t.deepEqual(order, ['many', 'few', 'many', 'few', 'many', 'many']);
});

test('a call for several accounts gets a slot as soon as one of the accounts may use it', async (t) => {
  const limiter = openLimiter(t);
  const candidates = listCandidates(createRoute('of-several', { maxConcurrency: 8 }));
  const acquire = async (...accounts: string[]): Promise<CallSlot> =>
    (await limiter.acquire(candidates, acquireOptions({ accountIds: () => accounts })))!;
  limiter.release(await acquire('few'), 'ok');
  const many = [];
  for (let i = 0; i < 7; i++) many.push(await acquire('many'));
  // The last slot is reserved for accounts that used slots recently.
  const accounts = ['many'];
  const waiting = limiter.acquire(candidates, acquireOptions({ accountIds: () => accounts }));
  await waitFor('the account to wait', async () => (await readWaiting('of-several')).includes('many'));
  accounts.push('few');
  const slot = (await waiting)!;
  t.is(slot.accountId, 'few');
  for (const one of [slot, ...many]) limiter.release(one, 'ok');
});

test('an account may use all slots, but at most half of them while another account waits at any worker', async (t) => {
  const [limiter, other] = [openLimiter(t), openLimiter(t)];
  const candidates = listCandidates(createRoute('shared', { maxConcurrency: 4 }));
  const acquire = async (by: RouteLimiter, accountId: string): Promise<CallSlot> =>
    (await by.acquire(candidates, acquireOptions({ accountIds: () => [accountId] })))!;
  const flood = await Promise.all(Array.from({ length: 4 }, () => acquire(limiter, 'many')));
  t.is(flood.length, 4, 'the account gets all slots while no other account waits');
  const granted: CallSlot[] = [];
  const wait = async (by: RouteLimiter, accountId: string): Promise<void> => {
    granted.push(await acquire(by, accountId));
  };
  const waiting = [
    ...Array.from({ length: 4 }, () => wait(limiter, 'many')),
    wait(other, 'few'),
    wait(other, 'few'),
  ];
  await waitFor('both accounts to wait', async () => (await readWaiting('shared')).length === 2);
  for (const accountId of ['few', 'few', 'many']) {
    const before = granted.length;
    limiter.release(flood.pop()!, 'ok');
    await waitFor('the next grant', () => granted.length > before);
    t.is(granted.at(-1)!.accountId, accountId);
    t.is(granted.length, before + 1);
  }
  for (let i = 0; i < 6; i++) {
    await waitFor('a grant to release', () => granted.length > i);
    limiter.release(granted[i]!, 'ok');
  }
  await Promise.all(waiting);
});

test('an account with half of the slots cannot use the last eighth if another account used slots recently', async (t) => {
  const limiter = openLimiter(t);
  const candidates = listCandidates(createRoute('kept-free', { maxConcurrency: 16 }));
  const acquire = async (accountId: string, deadlineAtMs = Date.now() + 20_000): Promise<CallSlot> =>
    (await limiter.acquire(candidates, acquireOptions({ accountIds: () => [accountId], deadlineAtMs })))!;
  limiter.release(await acquire('few'), 'ok');
  const held = [];
  for (let i = 0; i < 14; i++) held.push(await acquire('many'));
  await t.throwsAsync(acquire('many', Date.now() + 300), { code: 'deadline_exceeded' });
  const last = [await acquire('few'), await acquire('few')];
  for (const slot of [...held, ...last]) limiter.release(slot, 'ok');
});

test('a model does not wait for a slot behind a busy model of the same upstream', async (t) => {
  const limiter = openLimiter(t);
  const [busy, quiet] = ['busy', 'quiet'].map((id) =>
    listCandidates(createRoute(id, { upstream: 'of-both', maxConcurrency: 4 })),
  );
  const done = new AbortController();
  setMaxListeners(0, done.signal);
  let busyGrants = 0;
  const keepCalling = async (accountId: string): Promise<void> => {
    while (!done.signal.aborted) {
      const slot = (await limiter.acquire(
        busy!,
        acquireOptions({ accountIds: () => [accountId], signal: done.signal }),
      ))!;
      busyGrants += 1;
      await delay(100 + Math.random() * 100);
      limiter.release(slot, 'ok');
    }
  };
  const crowd = Array.from('abcd').flatMap((id) => Array.from({ length: 6 }, () => keepCalling(id)));
  await waitFor('the busy model to fill the slots', () => busyGrants > 4);
  const grantsPerWait: number[] = [];
  for (let i = 0; i < 10; i++) {
    const before = busyGrants;
    const slot = (await limiter.acquire(quiet!, acquireOptions({ accountIds: () => ['quiet'] })))!;
    grantsPerWait.push(busyGrants - before);
    await delay(20);
    limiter.release(slot, 'ok');
    await delay(50);
  }
  done.abort(new Error('done'));
  await Promise.allSettled(crowd);
  // If both models used one queue, some calls would wait for hundreds of calls of the busy model.
  t.true(Math.max(...grantsPerWait) < 30, grantsPerWait.join(' '));
});

test('with an odd number of slots, none stays free while two accounts wait', async (t) => {
  const limiter = openLimiter(t);
  const candidates = listCandidates(createRoute('odd', { maxConcurrency: 3 }));
  const grants: CallSlot[] = [];
  const acquire = async (accountId: string): Promise<void> => {
    grants.push((await limiter.acquire(candidates, acquireOptions({ accountIds: () => [accountId] })))!);
  };
  await Promise.all(['one', 'one', 'two'].map(acquire));
  const waiting = ['one', 'one', 'two', 'two'].map(acquire);
  await waitFor('both accounts to wait', async () => (await readWaiting('odd')).length === 2);
  limiter.release(grants[0]!, 'ok');
  await waitFor('the free slot to be granted', () => grants.length === 4);
  t.is(grants.length, 4);
  for (let i = 1; i < 7; i++) {
    await waitFor('a grant to release', () => grants.length > i);
    limiter.release(grants[i]!, 'ok');
  }
  await Promise.all(waiting);
});

test('a call can find out whether another account waits for its slot', async (t) => {
  const limiter = openLimiter(t);
  const candidates = listCandidates(createRoute('contested', { maxConcurrency: 1 }));
  const slot = (await limiter.acquire(candidates, acquireOptions({ accountIds: () => ['holder'] })))!;
  const ownCall = limiter.acquire(
    candidates,
    acquireOptions({ accountIds: () => ['holder'], deadlineAtMs: Date.now() + 300 }),
  );
  await t.throwsAsync(ownCall, { code: 'deadline_exceeded' });
  t.false(await limiter.isContested(slot), 'calls of the same account do not contest the slot');
  const waiting = limiter.acquire(candidates, acquireOptions({ accountIds: () => ['other'] }));
  await waitFor('the other account to wait', () => limiter.isContested(slot));
  limiter.release(slot, 'ok');
  const next = (await waiting)!;
  // The first account remains registered as waiting for half a second after its call timed out.
  await waitFor('no other account to wait', async () => !(await limiter.isContested(next)));
});

test('a slot is not lost when a waiting call is cancelled or times out', async (t) => {
  const limiter = openLimiter(t);
  const candidates = listCandidates(createRoute('leaving', { maxConcurrency: 1 }));
  const first = (await limiter.acquire(candidates, acquireOptions()))!;
  const cancellation = new AbortController();
  const reason = new Error('the caller disconnected');
  const cancelled = t.throwsAsync(
    limiter.acquire(candidates, acquireOptions({ signal: cancellation.signal })),
  );
  const timedOut = t.throwsAsync(
    limiter.acquire(candidates, acquireOptions({ deadlineAtMs: Date.now() + 50 })),
  );
  cancellation.abort(reason);
  t.is(await cancelled, reason);
  t.is(((await timedOut) as { code?: string }).code, 'deadline_exceeded');
  limiter.release(first, 'ok');
  t.truthy(await limiter.acquire(candidates, acquireOptions()));
});

test('a lease that is not renewed expires, and a renewed one does not', async (t) => {
  const limiter = openLimiter(t, leaseMs);
  const route = createRoute('renewed', { maxConcurrency: 1 });
  const candidates = listCandidates(route);
  t.truthy(await limiter.acquire(candidates, acquireOptions()));
  const other = openLimiter(t);
  await waitForRenewal(route.upstream.name, leaseMs);
  await t.throwsAsync(other.acquire(candidates, acquireOptions({ deadlineAtMs: Date.now() + 50 })));
  await limiter.stop();
  t.truthy(await other.acquire(candidates, acquireOptions()));
});

test('a breaker opens for all workers at a high failure rate over all of them, not after a few failures', async (t) => {
  const limiters = [openLimiter(t), openLimiter(t)];
  const candidates = listCandidates(createRoute('failing'));
  const few = await acquireAll(limiters, candidates, breakerRules.minCalls - 1);
  for (const slot of few) limiters[0]!.release(slot, 'bad');
  // One more call is still granted. Its failure reaches the minimum number of calls.
  const last = (await limiters[1]!.acquire(candidates, acquireOptions()))!;
  t.false(last.isProbe);
  limiters[1]!.release(last, 'bad');
  await limiters[1]!.stop();
  for (const limiter of limiters) t.is(await limiter.acquire(candidates, acquireOptions()), null);
});

test('a route stays available if less than half of its calls fail, not including key failures', async (t) => {
  const limiter = openLimiter(t);
  const candidates = listCandidates(createRoute('middling'));
  const grants = await acquireAll([limiter], candidates, 60);
  grants.forEach((slot, i) => limiter.release(slot, i % 5 === 0 ? 'bad' : i % 5 === 1 ? 'none' : 'ok'));
  await limiter.stop();
  t.truthy(await limiter.acquire(candidates, acquireOptions()));
});

test('an open breaker lets one probe through: a failed probe doubles the pause, a successful one ends it', async (t) => {
  const limiters = [openLimiter(t), openLimiter(t)];
  const candidates = listCandidates(createRoute('healing'));
  const [limiter, other] = [limiters[0]!, limiters[1]!];
  for (const slot of await acquireAll(limiters, candidates, breakerRules.minCalls))
    limiter.release(slot, 'bad');
  const wait = acquireOptions({ waitLimits: { keyMs: 10_000, breakerMs: 10_000 } });
  const openedAt = Date.now();
  const probe = (await limiter.acquire(candidates, wait))!;
  t.true(probe.isProbe);
  t.true(Date.now() - openedAt >= breakerRules.firstPauseMs - 50);
  t.is(await other.acquire(candidates, acquireOptions()), null, 'one probe at a time');
  limiter.release(probe, 'bad');
  await limiter.stop();
  const failedAt = Date.now();
  const second = (await other.acquire(candidates, wait))!;
  t.true(second.isProbe);
  t.true(Date.now() - failedAt >= breakerRules.firstPauseMs * 2 - 50);
  // Waiting calls get slots as soon as the probe succeeds.
  const waiting = [
    limiter.acquire(candidates, wait),
    limiter.acquire(candidates, wait),
    other.acquire(candidates, wait),
  ];
  other.release(second, 'ok');
  for (const slot of await Promise.all(waiting)) t.is(slot?.isProbe, false);
});

test('if the caller of a probe disconnects or its worker dies, another call may probe', async (t) => {
  const limiter = openLimiter(t);
  const candidates = listCandidates(createRoute('abandoned'));
  for (const slot of await acquireAll([limiter], candidates, breakerRules.minCalls))
    limiter.release(slot, 'bad');
  const wait = acquireOptions({ waitLimits: { keyMs: 15_000, breakerMs: 15_000 } });
  const abandoned = (await limiter.acquire(candidates, wait))!;
  limiter.release(abandoned, 'none');
  const dead = (await limiter.acquire(candidates, wait))!;
  t.true(dead.isProbe);
  // That probe is never released.
  const third = (await limiter.acquire(candidates, wait))!;
  t.true(third.isProbe);
});

test('if the Redis clock steps back by an hour, breakers still close and the slots of dead workers still become free', async (t) => {
  const limiter = openLimiter(t, 300);
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
  await redis().zadd(redisKeys.accountsFailedOnRoute(route.id), anHourAhead, 'account');
  await redis().zadd(redisKeys.callsOfUpstream(route.upstream.name), anHourAhead, 'other|dead');
  await redis().zadd(
    redisKeys.waitingFor(redisKeys.callsOfUpstream(route.upstream.name)),
    anHourAhead,
    'other',
  );
  const slot = await limiter.acquire(candidates, acquireOptions());
  t.is(slot?.isProbe, true);
  limiter.release(slot!, 'ok');
  await limiter.stop();
  t.is((await limiter.acquire(candidates, acquireOptions()))?.isProbe, false, 'the breaker is closed');
});

test('all workers skip a key until its cooldown ends, on one route or on all', async (t) => {
  const limiters = [openLimiter(t), openLimiter(t)];
  const [limiter, other] = [limiters[0]!, limiters[1]!];
  const upstream = 'shared-upstream';
  const route = createRoute('first-route', { upstream, apiKeys: ['good', 'poor'] });
  const sibling = createRoute('second-route', { upstream, apiKeys: ['good', 'poor'] });
  const poor = listCandidates(route)[1]!;
  const poorElsewhere = listCandidates(sibling)[1]!;

  const limited = (await limiter.acquire([poor], acquireOptions()))!;
  limiter.release(limited, 'none', {
    failure: 'rate_limited',
    scope: 'keyOnRoute',
    forMs: 1_500,
    reason: 'over its limit',
  });
  await limiter.stop();
  t.is(await other.acquire([poor], acquireOptions()), null);
  t.is((await other.acquire([poor, listCandidates(route)[0]!], acquireOptions()))?.candidate.apiKey, 'good');
  t.truthy(await other.acquire([poorElsewhere], acquireOptions()));
  // A call whose wait limit allows it waits for the key, but no longer than the cooldown.
  t.truthy(await other.acquire([poor], acquireOptions({ waitLimits: { keyMs: 10_000, breakerMs: 1_000 } })));

  const refused = (await other.acquire([poor], acquireOptions()))!;
  other.release(refused, 'none', {
    failure: 'auth',
    scope: 'key',
    forMs: 60_000,
    reason: 'refused with 401',
  });
  await other.stop();
  t.is(await limiter.acquire([poor], acquireOptions()), null);
  t.is(await limiter.acquire([poorElsewhere], acquireOptions()), null);
  t.truthy(await limiter.acquire(listCandidates(sibling), acquireOptions()));
});

test('rate-limited calls are counted for operators and do not open the breaker', async (t) => {
  const limiter = openLimiter(t);
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

test('another call may probe after a rate-limited probe', async (t) => {
  const limiter = openLimiter(t);
  const candidates = listCandidates(createRoute('limited-probe'));
  for (const slot of await acquireAll([limiter], candidates, breakerRules.minCalls))
    limiter.release(slot, 'bad');
  const wait = acquireOptions({ waitLimits: { keyMs: 15_000, breakerMs: 15_000 } });
  for (let i = 0; i < 2; i++) {
    const probe = (await limiter.acquire(candidates, wait))!;
    t.true(probe.isProbe);
    limiter.release(probe, 'limited');
  }
});

test('no API key is stored in Redis in plain text', async (t) => {
  const limiter = openLimiter(t);
  const secret = 'sk-very-secret-key-123456';
  const [candidate] = listCandidates(
    createRoute('secretive', { apiKeys: [secret], maxConcurrencyPerKey: 3 }),
  );
  const slot = (await limiter.acquire([candidate!], acquireOptions()))!;
  limiter.release(slot, 'none', {
    failure: 'auth',
    scope: 'key',
    forMs: 60_000,
    reason: 'refused with 401',
  });
  await limiter.stop();
  t.is(await limiter.acquire([candidate!], acquireOptions()), null);
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

test('a call has separate limits for waiting for a key and for a breaker', async (t) => {
  const limiter = openLimiter(t);
  const [candidate] = listCandidates(createRoute('patient', { apiKeys: ['a'] }));
  const waitLimits = { keyMs: 2_000, breakerMs: 100 };
  limiter.release((await limiter.acquire([candidate!], acquireOptions()))!, 'none', {
    failure: 'rate_limited',
    scope: 'keyOnRoute',
    forMs: 500,
    reason: 'over its limit',
  });
  await limiter.stop();
  t.truthy(await limiter.acquire([candidate!], acquireOptions({ waitLimits })));
  for (const slot of await acquireAll([limiter], [candidate!], breakerRules.minCalls))
    limiter.release(slot, 'bad');
  await limiter.stop();
  t.is(await limiter.acquire([candidate!], acquireOptions({ waitLimits })), null);
});

test('time spent in the queue does not count towards the wait for a rate-limited key', async (t) => {
  const limiter = openLimiter(t);
  const candidates = listCandidates(createRoute('queue-then-limit', { apiKeys: ['k'], maxConcurrency: 1 }));
  const first = (await limiter.acquire(candidates, acquireOptions()))!;
  const waitLimits = { keyMs: 600, breakerMs: 0 };
  const waiting = limiter.acquire(candidates, acquireOptions({ waitLimits }));
  await delay(700);
  limiter.release(first, 'none', {
    failure: 'rate_limited',
    scope: 'keyOnRoute',
    forMs: 200,
    reason: 'over its limit',
  });
  const slot = await waiting;
  t.not(slot, null);
  limiter.release(slot!, 'ok');
});

test('one usable key among many on cooldown is found', async (t) => {
  const limiter = openLimiter(t);
  const route = createRoute('many-keys', { apiKeys: Array.from({ length: 60 }, (_, i) => `key-${i}`) });
  const [good, ...bad] = listCandidates(route);
  for (const candidate of bad) {
    const slot = (await limiter.acquire([candidate], acquireOptions()))!;
    limiter.release(slot, 'none', {
      failure: 'auth',
      scope: 'key',
      forMs: 60_000,
      reason: 'out of money',
    });
  }
  for (let i = 0; i < 10; i++) {
    const slot = await limiter.acquire(orderCandidates([route], [], Math.random), acquireOptions());
    t.is(slot?.candidate.apiKey, good!.apiKey);
    if (slot !== null) limiter.release(slot, 'ok');
  }
});

test.serial('the leases of a worker with a wrong clock last as long as those of other workers', async (t) => {
  const realNow = Date.now;
  t.teardown(() => {
    Date.now = realNow;
  });
  for (const wrongMs of [-60_000, 60_000]) {
    const limiter = openLimiter(t, leaseMs);
    const other = openLimiter(t);
    const route = createRoute(`wrong-clock ${wrongMs}`, { maxConcurrency: 1 });
    const candidates = listCandidates(route);
    Date.now = () => realNow() + wrongMs;
    t.not(await limiter.acquire(candidates, acquireOptions()), null);
    await waitForRenewal(route.upstream.name, leaseMs);
    Date.now = realNow;
    const deadlineAtMs = Date.now() + 50;
    await t.throwsAsync(other.acquire(candidates, acquireOptions({ deadlineAtMs })), {
      message: /time|deadline/i,
    });
    // Without renewal, as if the worker had died.
    await limiter.stop();
    const slot = (await other.acquire(candidates, acquireOptions()))!;
    other.release(slot, 'ok');
  }
});

test('a renewal does not restore a lease that is released right after it', async (t) => {
  const key = redisKeys.callsOfRoute('renewed-and-released');
  await redis().zadd(redisKeys.slotHolders, Date.now() + 60_000, 'holder');
  await redis().script('FLUSH');
  await Promise.all([runRenewal(redis(), key, 'holder', ['lease'], 5_000), redis().zrem(key, 'lease')]);
  t.is(await redis().zcard(key), 0);
});

/** A Redis client that loses the replies to scripts while `isCutOff` is set. The scripts run only if `scriptsRun`. */
function createLossyClient(scriptsRun: boolean): { client: RedisClient; isCutOff: boolean } {
  const lossy: { client: RedisClient; isCutOff: boolean } = { client: redis(), isCutOff: false };
  const lost = new Error('Connection is closed.');
  lossy.client = new Proxy(redis(), {
    get(target, name) {
      const value = Reflect.get(target, name) as unknown;
      if (typeof value !== 'function') return value;
      const method = value.bind(target) as (...args: unknown[]) => Promise<unknown>;
      if (name !== 'evalsha' && name !== 'eval' && name !== 'zrem') return method;
      return async (...args: unknown[]) => {
        if (!lossy.isCutOff) return await method(...args);
        if (scriptsRun) await method(...args);
        throw lost;
      };
    },
  });
  return lossy;
}

test('if calls finish while Redis is down, their slots are free when it is back', async (t) => {
  const lossy = createLossyClient(false);
  const limiter = new RouteLimiter(lossy.client, randomUUID(), log);
  const candidates = listCandidates(createRoute('ends-during-outage', { maxConcurrency: 1 }));
  const slot = (await limiter.acquire(candidates, acquireOptions()))!;
  lossy.isCutOff = true;
  limiter.release(slot, 'ok');
  await delay(300);
  lossy.isCutOff = false;
  const other = openLimiter(t);
  // Before the lease would have expired.
  const next = await other.acquire(candidates, acquireOptions());
  t.not(next, null);
  other.release(next!, 'ok');
  await limiter.stop();
});

test('a slot is released if the reply that granted it was lost', async (t) => {
  const lossy = createLossyClient(true);
  const limiter = new RouteLimiter(lossy.client, randomUUID(), log);
  const candidates = listCandidates(createRoute('lost-reply', { maxConcurrency: 1 }));
  lossy.isCutOff = true;
  const waiting = limiter.acquire(candidates, acquireOptions());
  await delay(100);
  lossy.isCutOff = false;
  // Before the lease would have expired.
  const slot = await waiting;
  t.not(slot, null);
  limiter.release(slot!, 'ok');
  await limiter.stop();
});

test('a probe that has started to respond admits other calls before it finishes', async (t) => {
  const limiter = openLimiter(t);
  const other = openLimiter(t);
  const candidates = listCandidates(createRoute('long-responses'));
  for (const slot of await acquireAll([limiter], candidates, breakerRules.minCalls))
    limiter.release(slot, 'bad');
  const wait = acquireOptions({ waitLimits: { keyMs: 0, breakerMs: 10_000 } });
  const probe = (await limiter.acquire(candidates, wait))!;
  t.true(probe.isProbe);
  t.is(await other.acquire(candidates, acquireOptions()), null);
  const waiting = other.acquire(candidates, wait);
  limiter.confirm(probe);
  limiter.confirm(probe);
  t.is((await waiting)?.isProbe, false);
  // The outcome of the probe is then recorded like that of any other call.
  limiter.release(probe, 'bad');
  await limiter.stop();
  t.truthy(await other.acquire(candidates, acquireOptions()));
});
