import { randomUUID } from 'node:crypto';
import test, { type ExecutionContext } from 'ava';
import { listCandidates, type RouteCandidate } from '../../../shared/routing/route-candidate.ts';
import { redisKeys } from '../../../shared/platform/redis/redis-keys.ts';
import type { CallSlot } from '../../../workers/routing/acquire-script.ts';
import type { CallClass } from '../../../shared/work/queue/call-class.ts';
import { createLogger } from '../../../shared/platform/runtime/logger.ts';
import { RouteLimiter } from '../../../workers/routing/route-limiter.ts';
import { createRoute } from '../../support/routing.ts';
import { useRedis } from '../../support/use-redis.ts';
import { waitFor } from '../../support/wait-for.ts';

/** Calls of three classes: for callers who wait, for durable jobs, and for lines of batch files. */

const redis = useRedis(test);
const log = createLogger('test', 'silent');

function openLimiter(t: ExecutionContext): RouteLimiter {
  const limiter = new RouteLimiter(redis(), randomUUID(), log);
  t.teardown(() => limiter.stop());
  return limiter;
}

/** Slots of one upstream, and the calls that hold them or wait for them. */
class Calls {
  readonly candidates: readonly RouteCandidate[];
  readonly held: [limiter: RouteLimiter, slot: CallSlot][] = [];
  /** The class and account of each call that got a slot, in order. */
  readonly granted: string[] = [];
  readonly #key: string;
  readonly #cancellation = new AbortController();
  readonly #waiting: Promise<void>[] = [];

  constructor(t: ExecutionContext, upstream: string, maxConcurrency: number) {
    const route = createRoute(upstream, { maxConcurrency });
    this.candidates = listCandidates(route);
    this.#key = redisKeys.callsOfUpstream(route.upstream.name);
    t.teardown(() => this.end());
  }

  start(limiter: RouteLimiter, callClass: CallClass, accountId: string): Promise<void> {
    const options = {
      accountIds: () => [accountId],
      signal: this.#cancellation.signal,
      deadlineAtMs: Date.now() + 60_000,
      waitLimits: { keyMs: 0, breakerMs: 0 },
      callClass,
    };
    const call = limiter.acquire(this.candidates, options).then(
      (slot) => {
        this.granted.push(`${callClass} ${accountId}`);
        this.held.push([limiter, slot!]);
      },
      () => undefined,
    );
    this.#waiting.push(call);
    return call;
  }

  /** Ends the call that has run for longest. */
  release(): void {
    const [limiter, slot] = this.held.shift()!;
    limiter.release(slot, 'ok');
  }

  /** Resolves when Redis has told this many accounts of the class that no slot is free. */
  async waitForWaiting(callClass: CallClass, count: number): Promise<void> {
    const keyOf = { interactive: 'waitingFor', job: 'jobsWaitSince', batch: 'batchWaitsSince' } as const;
    const key = redisKeys[keyOf[callClass]](this.#key);
    await waitFor(`${count} accounts to wait`, async () => (await redis().zcard(key)) >= count);
  }

  async end(): Promise<void> {
    this.#cancellation.abort();
    await Promise.all(this.#waiting);
    while (this.held.length > 0) this.release();
  }
}

test('jobs do not use the last eighth of the slots, and get a slot only after all calls that a client waits for', async (t) => {
  const limiters = [openLimiter(t), openLimiter(t)] as const;
  const calls = new Calls(t, 'pictures', 8);
  for (let i = 0; i < 7; i++) await calls.start(limiters[i % 2]!, 'job', 'many');
  for (const limiter of limiters) void calls.start(limiter, 'job', 'many');
  // The eighth slot is for calls that a client waits for.
  await calls.start(limiters[0], 'interactive', 'caller');
  t.is(calls.granted.length, 8);

  const callers = limiters.map((limiter, i) => calls.start(limiter, 'interactive', `caller ${i}`));
  await calls.waitForWaiting('interactive', 2);
  for (let i = 0; i < 2; i++) calls.release();
  await Promise.all(callers);
  t.deepEqual(calls.granted.slice(8).toSorted(), ['interactive caller 0', 'interactive caller 1']);
});

for (const [slots, left] of [
  [1, 0],
  [2, 1],
  [3, 1],
  [8, 1],
  [17, 2],
] as const) {
  test(`of ${slots} slots, batch calls leave ${left} to others, whoever uses the rest`, async (t) => {
    const [limiter, other] = [openLimiter(t), openLimiter(t)];
    const calls = new Calls(t, `of-${slots}`, slots);
    const used = slots - left;
    for (let i = 0; i < used; i++) await calls.start(limiter, i % 2 === 0 ? 'batch' : 'interactive', 'a');
    void calls.start(limiter, 'batch', 'a');
    void calls.start(other, 'batch', 'b');
    await calls.waitForWaiting('batch', 2);
    t.is(calls.granted.length, used);
    for (let i = 0; i < left; i++) await calls.start(limiter, 'interactive', 'a');
    t.is(calls.granted.filter((call) => call.startsWith('batch')).length, Math.ceil(used / 2));
  });
}

test('batch calls leave slots of keys and routes, too', async (t) => {
  const limiter = openLimiter(t);
  for (const route of [
    createRoute('narrow-route', { routeConcurrency: 2 }),
    createRoute('narrow-key', { apiKeys: ['key'], maxConcurrencyPerKey: 2 }),
  ]) {
    const acquire = async (callClass: CallClass): Promise<CallSlot | null> =>
      await limiter.acquire(listCandidates(route), {
        accountIds: () => ['account'],
        signal: new AbortController().signal,
        deadlineAtMs: callClass === 'batch' ? Date.now() + 300 : Date.now() + 20_000,
        waitLimits: { keyMs: 0, breakerMs: 0 },
        callClass,
      });
    const slots = [await acquire('interactive')];
    await t.throwsAsync(acquire('batch'), { code: 'deadline_exceeded' });
    slots.push(await acquire('interactive'));
    for (const slot of slots) limiter.release(slot!, 'ok');
  }
});

test('a slot goes to a caller first, then to a job, then to a batch call, in whichever worker they wait', async (t) => {
  for (const isSameWorker of [true, false]) {
    const limiter = openLimiter(t);
    const limiterOf = (): RouteLimiter => (isSameWorker ? limiter : openLimiter(t));
    const calls = new Calls(t, `single-${isSameWorker}`, 1);
    await calls.start(limiter, 'batch', 'first');
    // The calls with the least precedence have waited longest.
    const waiting: Promise<void>[] = [];
    for (const callClass of ['batch', 'job', 'interactive'] as const) {
      waiting.push(calls.start(limiterOf(), callClass, 'waiting'));
      // In one worker, an earlier class need not be known to Redis.
      if (!isSameWorker || callClass === 'batch') await calls.waitForWaiting(callClass, 1);
    }
    for (let ended = 0; ended < 3; ended++) {
      calls.release();
      await waitFor('the next call', () => calls.granted.length === ended + 2);
    }
    await Promise.all(waiting);
    t.deepEqual(calls.granted.slice(1), ['interactive waiting', 'job waiting', 'batch waiting']);
    await calls.end();
  }
});

test('the batch calls of an account do not keep its callers from the slots that are left', async (t) => {
  const limiter = openLimiter(t);
  const calls = new Calls(t, 'own', 8);
  // Another account used the slots recently, so an account with half of them leaves the last eighth free.
  await calls.start(limiter, 'interactive', 'another');
  calls.release();
  for (let i = 0; i < 7; i++) await calls.start(limiter, 'batch', 'account');
  await calls.start(limiter, 'interactive', 'account');
  t.is(calls.granted.at(-1), 'interactive account');
});

for (const callClass of ['job', 'batch'] as const) {
  test(`an account with one waiting ${callClass} call gets a slot, even if another worker has many of another account`, async (t) => {
    const [busy, idle] = [openLimiter(t), openLimiter(t)];
    const calls = new Calls(t, `fair-${callClass}`, 1);
    for (let i = 0; i < 9; i++) void calls.start(busy, callClass, 'many');
    await waitFor('the first slot', () => calls.granted.length === 1);
    void calls.start(idle, callClass, 'single');
    await calls.waitForWaiting(callClass, 2);
    while (calls.granted.length < 6 && !calls.granted.includes(`${callClass} single`)) {
      const { length } = calls.granted;
      calls.release();
      await waitFor('the next slot', () => calls.granted.length > length);
    }
    t.is(calls.granted.at(-1), `${callClass} single`, calls.granted.join());
  });
}
