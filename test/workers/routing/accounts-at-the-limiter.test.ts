import { randomUUID } from 'node:crypto';
import { setMaxListeners } from 'node:events';
import test, { type ExecutionContext } from 'ava';
import { breakerRules } from '../../../shared/routing/breaker-rules.ts';
import type { CallSlot } from '../../../workers/routing/acquire-script.ts';
import type { CallOutcome, KeyCooldown } from '../../../workers/routing/outcome-script.ts';
import { RouteStateStore } from '../../../shared/routing/route-state-store.ts';
import { listCandidates, type RouteCandidate } from '../../../shared/routing/route-candidate.ts';
import { createLogger } from '../../../shared/platform/runtime/logger.ts';
import { RouteLimiter } from '../../../workers/routing/route-limiter.ts';
import { createRoute } from '../../support/routing.ts';
import { useRedis } from '../../support/use-redis.ts';

/** How failed calls of one account affect other accounts on the same route or key. */

const redis = useRedis(test);
const log = createLogger('test', 'silent');

class Callers {
  readonly #candidates: readonly RouteCandidate[];

  constructor(candidates: readonly RouteCandidate[]) {
    this.#candidates = candidates;
  }

  async acquire(accountId: string, waitLimitMs = 0): Promise<CallSlot | null> {
    const limiter = new RouteLimiter(redis(), randomUUID(), log);
    const waitLimits = { keyMs: waitLimitMs, breakerMs: waitLimitMs };
    const limits = { signal: new AbortController().signal, deadlineAtMs: Date.now() + 20_000, waitLimits };
    const slot = await limiter.acquire(this.#candidates, { ...limits, accountIds: () => [accountId] });
    if (slot !== null) limiter.release(slot, 'none');
    await limiter.stop();
    return slot;
  }

  /** Makes a call for the account that ends with the given outcome. */
  async call(
    accountId: string,
    callOutcome: CallOutcome,
    cooldown: KeyCooldown | null = null,
  ): Promise<CallSlot> {
    const limiter = new RouteLimiter(redis(), randomUUID(), log);
    const waitLimits = { keyMs: 0, breakerMs: 0 };
    const limits = { signal: new AbortController().signal, deadlineAtMs: Date.now() + 20_000, waitLimits };
    const slot = await limiter.acquire(this.#candidates, { ...limits, accountIds: () => [accountId] });
    if (slot === null) throw new Error(`${accountId} got no slot`);
    limiter.release(slot, callOutcome, cooldown);
    await limiter.stop();
    return slot;
  }
}

async function failUntilOpen(t: ExecutionContext, callers: Callers, accountId: string): Promise<void> {
  for (let i = 0; i < breakerRules.minCalls; i++) await callers.call(accountId, 'bad');
  t.is(await callers.acquire(accountId), null);
}

test('failures of one account open the breaker for that account only, even if no other account called before', async (t) => {
  const callers = new Callers(listCandidates(createRoute('one-fails')));
  await failUntilOpen(t, callers, 'failing');
  // Not more calls than fit into the first pause on a busy machine.
  for (let i = 0; i < 4; i++) t.false((await callers.call('other', 'ok')).isProbe);
  t.is(await callers.acquire('failing'), null, 'the successes of others do not close its breaker');
  // A single failure can happen on any route.
  await callers.call('other', 'bad');
  t.false((await callers.call('other', 'ok')).isProbe);
  t.false((await callers.call('third', 'bad')).isProbe);
  t.false((await callers.call('third', 'ok')).isProbe);
});

test('an outage opens the breaker for all accounts, and an account without failures may probe soon', async (t) => {
  const callers = new Callers(listCandidates(createRoute('outage')));
  await callers.call('well', 'ok');
  for (const accountId of ['a', 'b', 'a', 'b', 'a', 'b', 'a', 'b', 'a']) await callers.call(accountId, 'bad');
  // Two accounts fail and only one was served, so the breaker opens for all.
  const slots = await Promise.all(['a', 'b', 'well', 'new'].map((accountId) => callers.acquire(accountId)));
  t.deepEqual(slots, [null, null, null, null]);
  // Each failed probe doubles the pause for the accounts that failed.
  for (const pauseMs of [1_000, 2_000]) {
    t.true(await failProbe(callers, 'a', pauseMs));
  }
  t.is(await callers.acquire('a', 1_500), null);
  t.true((await callers.acquire('new', 1_500))?.isProbe);
  t.true((await callers.call('new', 'ok')).isProbe);
  for (const accountId of ['a', 'b', 'well', 'new']) t.false((await callers.acquire(accountId))?.isProbe);
});

/** Makes a call that fails after the pause. @returns whether the call was a probe */
async function failProbe(callers: Callers, accountId: string, pauseMs: number): Promise<boolean> {
  await callers.acquire(accountId, pauseMs + 500);
  return (await callers.call(accountId, 'bad')).isProbe;
}

test('failures of a minority of accounts do not open the breaker for the majority', async (t) => {
  const callers = new Callers(listCandidates(createRoute('few-fail')));
  for (const accountId of ['x', 'y', 'z']) await callers.call(accountId, 'ok');
  for (let i = 0; i < breakerRules.minCalls; i++) {
    for (const accountId of ['a', 'b'])
      if ((await callers.acquire(accountId)) !== null) await callers.call(accountId, 'bad');
  }
  for (const accountId of ['a', 'b']) t.is(await callers.acquire(accountId), null);
  for (const accountId of ['x', 'y', 'z', 'new']) t.false((await callers.acquire(accountId))?.isProbe);
});

const refused = (forMs = 60_000): KeyCooldown => ({
  failure: 'auth',
  scope: 'keyOnRoute',
  forMs,
  reason: 'refused with 403',
});

test('a key refused for one account is on cooldown for that account, and for all accounts once it is refused for more accounts than it serves', async (t) => {
  const route = createRoute('refusing', { apiKeys: ['key'] });
  const callers = new Callers(listCandidates(route));
  const store = new RouteStateStore(redis());
  await callers.call('a', 'none', refused());
  t.is(await callers.acquire('a'), null);
  await callers.call('x', 'ok');
  await callers.call('y', 'ok');
  t.like((await store.read(listCandidates(route)[0]!, Date.now())).cooldown, { isForAll: false });
  await callers.call('b', 'limited', refused());
  t.truthy(await callers.acquire('x'), 'the key serves two accounts');
  await callers.call('c', 'none', refused());
  // Now it was refused for three accounts and served two.
  for (const accountId of ['a', 'b', 'c', 'x', 'new'])
    t.is(await callers.acquire(accountId), null, accountId);
  t.like((await store.read(listCandidates(route)[0]!, Date.now())).cooldown, { isForAll: true });
  await store.reset(route.upstream, [route]);
  for (const accountId of ['a', 'x']) t.truthy(await callers.acquire(accountId));
});

test('if the account itself may have caused a refusal, the key has a shorter cooldown and is usable again afterwards', async (t) => {
  const callers = new Callers(listCandidates(createRoute('shortly', { apiKeys: ['key'] })));
  await callers.call('a', 'none', { ...refused(), forAccountMs: 1_500 });
  t.is(await callers.acquire('a'), null);
  t.truthy(await callers.acquire('a', 3_000));
});

test('a key that is itself invalid goes on cooldown for all accounts immediately', async (t) => {
  const callers = new Callers(listCandidates(createRoute('revoked', { apiKeys: ['key'] })));
  await callers.call('x', 'ok');
  await callers.call('a', 'none', {
    failure: 'auth',
    scope: 'key',
    forMs: 60_000,
    reason: 'refused with 401',
  });
  for (const accountId of ['a', 'x', 'new']) t.is(await callers.acquire(accountId), null);
});

test('accounts waiting for a key’s cooldown do not block other accounts from using the key', async (t) => {
  const candidates = listCandidates(createRoute('behind', { apiKeys: ['key'] }));
  const callers = new Callers(candidates);
  const many = Array.from({ length: 25 }, (_, i) => `refused-${i}`);
  for (let i = 0; i < 30; i++) await callers.call(`served-${i}`, 'ok');
  for (const accountId of many) await callers.call(accountId, 'none', refused(14_000));
  const limiter = new RouteLimiter(redis(), randomUUID(), log);
  t.teardown(() => limiter.stop());
  const done = new AbortController();
  setMaxListeners(0, done.signal);
  const wait = async (accountId: string, keyMs: number): Promise<CallSlot | null> =>
    await limiter.acquire(candidates, {
      accountIds: () => [accountId],
      signal: done.signal,
      deadlineAtMs: Date.now() + 20_000,
      waitLimits: { keyMs, breakerMs: 0 },
    });
  const waiting = many.map((accountId) => wait(accountId, 15_000));
  const slot = await wait('innocent', 0);
  t.is(slot?.accountId, 'innocent');
  done.abort(new Error('done'));
  await Promise.allSettled(waiting);
});
