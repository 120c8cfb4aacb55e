import { randomUUID } from 'node:crypto';
import test, { type ExecutionContext } from 'ava';
import type { CatalogRoute } from '../../../shared/catalog/catalog-schema.ts';
import type { RedisClient } from '../../../shared/platform/redis/redis-client.ts';
import { redisKeys } from '../../../shared/platform/redis/redis-keys.ts';
import type { CallSlot } from '../../../workers/routing/acquire-script.ts';
import { breakerRules } from '../../../shared/routing/breaker-rules.ts';
import { listSlotSets, slotsOf } from '../../../shared/routing/candidate-keys.ts';
import { runRenewal } from '../../../workers/routing/renew-script.ts';
import { listCandidates } from '../../../shared/routing/route-candidate.ts';
import { RouteStateStore } from '../../../shared/routing/route-state-store.ts';
import { RouteLimiter } from '../../../workers/routing/route-limiter.ts';
import { captureLog, type LogLine } from '../../support/captured-log.ts';
import { createRoute } from '../../support/routing.ts';
import { useRedis } from '../../support/use-redis.ts';
import { waitFor } from '../../support/wait-for.ts';
import { liveness } from '../../../shared/platform/redis/liveness.ts';

/** Workers hold call slots only as long as they report as alive. */

const redis = useRedis(test);

interface TestWorker {
  readonly limiter: RouteLimiter;
  readonly lines: readonly LogLine[];
  /** From now on, none of its commands reach Redis. */
  readonly cutOff: () => void;
  readonly reconnect: () => void;
}

function startWorker(t: ExecutionContext, route: CatalogRoute): TestWorker {
  let isCutOff = false;
  const client: RedisClient = new Proxy(redis(), {
    get(target, name) {
      const value = Reflect.get(target, name) as unknown;
      if (typeof value !== 'function') return value;
      if (isCutOff) return () => Promise.reject(new Error('Connection is closed.'));
      return (value as (...args: unknown[]) => unknown).bind(target);
    },
  });
  const { log, lines } = captureLog();
  const limiter = new RouteLimiter(client, randomUUID(), log, { slotSets: () => listSlotSets([route]) });
  t.teardown(() => limiter.stop());
  return {
    limiter,
    lines,
    cutOff: () => {
      isCutOff = true;
    },
    reconnect: () => {
      isCutOff = false;
    },
  };
}

const options = (forMs = 60_000) => ({
  accountIds: () => ['account'],
  signal: new AbortController().signal,
  deadlineAtMs: Date.now() + forMs,
  waitLimits: { keyMs: 0, breakerMs: 0 },
});

async function acquire({ limiter }: TestWorker, route: CatalogRoute, forMs?: number): Promise<CallSlot> {
  return (await limiter.acquire(listCandidates(route), options(forMs)))!;
}

const readLeases = (route: CatalogRoute): Promise<string[]> =>
  redis().zrange(redisKeys.callsOfUpstream(route.upstream.name), '0', '-1');

test('the slots of a dead worker are free once it counts as dead, long before its leases expire, and every live worker keeps its own', async (t) => {
  const route = createRoute('dying', { maxConcurrency: 3, routeConcurrency: 3 });
  const [dead, live] = [startWorker(t, route), startWorker(t, route)];
  await acquire(dead, route);
  await acquire(dead, route);
  const own = await acquire(live, route);
  dead.cutOff();
  const cutOffAtMs = performance.now();
  const slots = await Promise.all([acquire(live, route), acquire(live, route)]);
  // The leases last 30 s.
  t.true(performance.now() - cutOffAtMs < 3 * liveness.worker.deadMs);
  t.deepEqual((await readLeases(route)).sort(), [own, ...slots].map(({ lease }) => lease).sort());
  t.like(
    live.lines.find(({ msg }) => msg === 'call slots of a dead worker freed'),
    { level: 40, leases: 4 },
  );
});

test('a worker that only seemed dead changes nothing when it returns: neither slots nor breakers, and continues under a new name', async (t) => {
  const route = createRoute('returning', { maxConcurrency: 2 * breakerRules.minCalls });
  const [returning, live] = [startWorker(t, route), startWorker(t, route)];
  const old: CallSlot[] = [];
  for (let i = 0; i < 2 * breakerRules.minCalls; i++) old.push(await acquire(returning, route));
  returning.cutOff();
  const slots = [await acquire(live, route), await acquire(live, route)];
  const before = await readLeases(route);
  t.is(before.length, 2);
  returning.reconnect();
  // A renewal that was on its way.
  const { keys } = slotsOf(old[0]!.candidate);
  const [{ holder, lease }] = old as [CallSlot];
  t.false(await runRenewal(redis(), keys[0], holder, [lease], 30_000));
  for (const slot of old.slice(0, breakerRules.minCalls)) returning.limiter.release(slot, 'bad');
  await waitFor('it to notice', () =>
    returning.lines.some(({ msg }) => msg === 'this worker counted as dead, and its call slots were freed'),
  );
  for (const slot of old.slice(breakerRules.minCalls)) returning.limiter.release(slot, 'bad');
  t.deepEqual(await readLeases(route), before);
  const next = await acquire(returning, route);
  t.not(next.holder, holder);
  t.deepEqual((await readLeases(route)).sort(), [...before, next.lease].sort());
  const candidate = listCandidates(route)[0]!;
  const state = await new RouteStateStore(redis()).read(candidate, Date.now());
  t.like(state, { breaker: 'closed', failed: 0, calls: 3 });
  for (const slot of slots) live.limiter.release(slot, 'ok');
  returning.limiter.release(next, 'ok');
});

test('a slot granted to a worker before it seemed dead is not used after it returns', async (t) => {
  const route = createRoute('granted', { maxConcurrency: 2 });
  const [returning, live] = [startWorker(t, route), startWorker(t, route)];
  const held = [await acquire(returning, route), await acquire(live, route)];
  const waiting = acquire(returning, route);
  returning.cutOff();
  const slots = [await acquire(live, route)];
  live.limiter.release(slots[0]!, 'ok');
  returning.reconnect();
  const slot = await waiting;
  t.not(slot.holder, held[0]!.holder);
  t.true((await readLeases(route)).includes(slot.lease));
});

test('after an outage of Redis, workers have time to report before any counts as dead', async (t) => {
  const route = createRoute('outage', { maxConcurrency: 2 });
  const [first, second] = [startWorker(t, route), startWorker(t, route)];
  const slots = [await acquire(first, route), await acquire(second, route)];
  // As if no report had arrived for ten seconds.
  const [second_] = await redis().time();
  const nowMs = Number(second_) * 1_000;
  await redis()
    .multi()
    .hset(redisKeys.slotHoldersState, 'reportedAt', nowMs - 10_000)
    .zadd(redisKeys.slotHolders, 'XX', nowMs - 5_000, slots[0]!.holder, nowMs - 5_000, slots[1]!.holder)
    .exec();
  const readAliveUntil = (holder: string): Promise<string | null> =>
    redis().zscore(redisKeys.slotHolders, holder);
  for (const { holder } of slots)
    await waitFor('its report', async () => Number(await readAliveUntil(holder)) > nowMs);
  t.deepEqual((await readLeases(route)).sort(), slots.map(({ lease }) => lease).sort());
  for (const { lines } of [first, second]) t.deepEqual(lines, []);
});

// Serial, because it deletes what all workers reported.
test.serial(
  'if Redis loses its data, the survivors restore their slots before new ones are granted',
  async (t) => {
    const route = createRoute('lost', { maxConcurrency: 2 });
    const [first, second] = [startWorker(t, route), startWorker(t, route)];
    const slots = [await acquire(first, route), await acquire(second, route)];
    const { slotHolders, deadSlotHolders, slotHoldersState } = redisKeys;
    await redis().del(
      slotHolders,
      deadSlotHolders,
      slotHoldersState,
      redisKeys.callsOfUpstream(route.upstream.name),
    );
    await t.throwsAsync(acquire(second, route, 4_000), { code: 'deadline_exceeded' });
    t.deepEqual((await readLeases(route)).sort(), slots.map(({ lease }) => lease).sort());
    first.limiter.release(slots[0]!, 'ok');
    t.truthy(await acquire(second, route));
    for (const { lines } of [first, second]) t.deepEqual(lines, []);
  },
);

test('a worker that stops leaves no slots behind, even those that it could not release', async (t) => {
  const route = createRoute('stopping', { maxConcurrency: 1 });
  const [stopping, live] = [startWorker(t, route), startWorker(t, route)];
  await acquire(stopping, route);
  const waiting = acquire(live, route);
  const sinceMs = performance.now();
  await stopping.limiter.stop();
  t.truthy(await waiting);
  t.true(performance.now() - sinceMs < 3 * liveness.worker.deadMs);
});
