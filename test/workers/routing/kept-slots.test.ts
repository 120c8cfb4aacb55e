import { randomUUID } from 'node:crypto';
import test, { type ExecutionContext } from 'ava';
import type { CallSlot } from '../../../workers/routing/acquire-script.ts';
import { listCandidates, type RouteCandidate } from '../../../shared/routing/route-candidate.ts';
import { RouteStateStore } from '../../../shared/routing/route-state-store.ts';
import { createLogger } from '../../../shared/platform/runtime/logger.ts';
import { RouteLimiter } from '../../../workers/routing/route-limiter.ts';
import { createRoute } from '../../support/routing.ts';
import { useRedis } from '../../support/use-redis.ts';
import { waitFor } from '../../support/wait-for.ts';

/** A slot stays with its account for a moment after a successful call. */

const redis = useRedis(test);
const log = createLogger('test', 'silent');
const noWait = { keyMs: 0, breakerMs: 0 };

function openLimiter(t: ExecutionContext): RouteLimiter {
  const limiter = new RouteLimiter(redis(), randomUUID(), log);
  t.teardown(() => limiter.stop());
  return limiter;
}

const acquire = async (
  limiter: RouteLimiter,
  candidates: readonly RouteCandidate[],
  accountId = 'account',
): Promise<CallSlot | null> =>
  await limiter.acquire(candidates, {
    accountIds: () => [accountId],
    signal: new AbortController().signal,
    deadlineAtMs: Date.now() + 20_000,
    waitLimits: noWait,
    takesKeptSlots: true,
  });

const readState = (candidates: readonly RouteCandidate[]) =>
  new RouteStateStore(redis()).read(candidates[0]!, Date.now());

test('calls of one account one after the other share a slot, and all of them are counted', async (t) => {
  const limiter = openLimiter(t);
  const route = createRoute('shared');
  const leases = new Set<string>();
  for (let call = 0; call < 20; call++) {
    const slot = (await acquire(limiter, listCandidates(route)))!;
    leases.add(slot.lease);
    limiter.release(slot, 'ok');
  }
  t.true(leases.size < 10, `${leases.size} leases`);
  await limiter.stop();
  t.like(await readState(listCandidates(route)), { succeeded: 20, failed: 0, calls: 0 });
});

test('a slot that no call takes is free again shortly, and its success is reported', async (t) => {
  const limiter = openLimiter(t);
  const candidates = listCandidates(createRoute('idle'));
  limiter.release((await acquire(limiter, candidates))!, 'ok');
  await waitFor('the slot to be free', async () => (await readState(candidates)).calls === 0);
  await waitFor('the success to be reported', async () => (await readState(candidates)).succeeded === 1);
  t.pass();
});

test('a slot is kept neither for another account, nor if few are free, nor after a failure', async (t) => {
  const limiter = openLimiter(t);
  const shared = listCandidates(createRoute('of-others'));
  const first = (await acquire(limiter, shared))!;
  limiter.release(first, 'ok');
  t.not((await acquire(limiter, shared, 'another'))!.lease, first.lease);

  const narrow = listCandidates(createRoute('narrow', { maxConcurrency: 8 }));
  limiter.release((await acquire(limiter, narrow))!, 'ok');
  await waitFor('the slot to be free', async () => (await readState(narrow)).calls === 0);

  const failing = listCandidates(createRoute('failing'));
  const running = (await acquire(limiter, failing))!;
  limiter.release((await acquire(limiter, failing))!, 'bad');
  limiter.release(running, 'ok');
  t.not(
    (await acquire(limiter, failing))!.lease,
    running.lease,
    'Redis is asked whether the route may be called',
  );
});

test('a failure is reported at once, after the earlier successes in the same slot', async (t) => {
  const limiter = openLimiter(t);
  const candidates = listCandidates(createRoute('then-failing'));
  for (const outcome of ['ok', 'ok', 'bad'] as const)
    limiter.release((await acquire(limiter, candidates))!, outcome);
  await waitFor('the failure', async () => (await readState(candidates)).failed === 1);
  t.like(await readState(candidates), { succeeded: 2, failed: 1, calls: 0 });
});

test('a call of this process that waits for a slot gets the kept ones', async (t) => {
  const limiter = openLimiter(t);
  const candidates = listCandidates(createRoute('crowded', { maxConcurrency: 32 }));
  const slots = [];
  for (let call = 0; call < 32; call++) slots.push((await acquire(limiter, candidates))!);
  const waiting = acquire(limiter, candidates, 'another');
  for (const slot of slots) limiter.release(slot, 'ok');
  t.is((await waiting)?.accountId, 'another');
});

test('a slot is neither kept by a call that did not offer it, nor given to one that did not ask for it', async (t) => {
  const limiter = openLimiter(t);
  const candidates = listCandidates(createRoute('not-asked'));
  const options = {
    accountIds: () => ['account'],
    signal: new AbortController().signal,
    deadlineAtMs: Date.now() + 20_000,
    waitLimits: noWait,
  };
  const plain = (await limiter.acquire(candidates, options))!;
  limiter.release(plain, 'ok');
  const first = (await acquire(limiter, candidates))!;
  t.not(first.lease, plain.lease);
  limiter.release(first, 'ok');
  t.not((await limiter.acquire(candidates, options))!.lease, first.lease);
});

test('a kept slot is given only to a call that a caller waits for, because others must ask whether callers wait', async (t) => {
  const limiter = openLimiter(t);
  const candidates = listCandidates(createRoute('of-callers'));
  const first = (await acquire(limiter, candidates))!;
  limiter.release(first, 'ok');
  const options = {
    accountIds: () => ['account'],
    signal: new AbortController().signal,
    deadlineAtMs: Date.now() + 20_000,
    waitLimits: noWait,
    takesKeptSlots: true,
  };
  for (const callClass of ['job', 'batch'] as const) {
    const slot = (await limiter.acquire(candidates, { ...options, callClass }))!;
    t.not(slot.lease, first.lease);
    limiter.release(slot, 'ok');
  }
});
