import { randomUUID } from 'node:crypto';
import test, { type ExecutionContext } from 'ava';
import { listCandidates } from '../../../shared/routing/route-candidate.ts';
import type { CallSlot } from '../../../workers/routing/acquire-script.ts';
import { createLogger } from '../../../shared/platform/runtime/logger.ts';
import { RouteLimiter } from '../../../workers/routing/route-limiter.ts';
import { findKeys } from '../../support/all-of-redis.ts';
import { openTestRedis } from '../../support/stores.ts';
import {
  createRedis,
  waitUntilReady,
  type RedisClient,
} from '../../../shared/platform/redis/redis-client.ts';
import { createRoute } from '../../support/routing.ts';
import { waitFor } from '../../support/wait-for.ts';

/** Calls for durable jobs: no client holds a connection open for them. */

const log = createLogger('test', 'silent');

async function openRedis(t: ExecutionContext): Promise<RedisClient> {
  const server = await openTestRedis();
  const redis = createRedis(server.url, 'commands', log);
  await waitUntilReady(redis);
  t.teardown(async () => {
    redis.disconnect();
    await server.close();
  });
  return redis;
}

test('background calls do not use the last eighth of the slots, and get a slot only after all calls that a client waits for', async (t) => {
  const redis = await openRedis(t);
  const candidates = listCandidates(createRoute('pictures', { maxConcurrency: 8 }));
  const limiters = [new RouteLimiter(redis, randomUUID(), log), new RouteLimiter(redis, randomUUID(), log)];
  t.teardown(() => Promise.all(limiters.map((limiter) => limiter.stop())));
  const cancellation = new AbortController();
  const acquire = (
    limiter: RouteLimiter,
    accountId: string,
    isBackground: boolean,
  ): Promise<CallSlot | null> =>
    limiter.acquire(candidates, {
      accountIds: () => [accountId],
      signal: cancellation.signal,
      deadlineAtMs: Date.now() + 60_000,
      waitLimits: { keyMs: 0, breakerMs: 0 },
      isBackground,
    });
  const held: CallSlot[] = [];
  for (let i = 0; i < 7; i++) held.push((await acquire(limiters[i % 2]!, 'many', true))!);
  let backgroundGrants = 0;
  const waiting = [0, 1].map((i) =>
    acquire(limiters[i]!, 'many', true).then(
      (slot) => {
        backgroundGrants += 1;
        held.push(slot!);
      },
      () => undefined,
    ),
  );
  // The eighth slot is for calls that a client waits for.
  held.push((await acquire(limiters[0]!, 'caller', false))!);
  t.is(backgroundGrants, 0);

  const order: string[] = [];
  const callers = limiters.map((limiter, i) =>
    acquire(limiter, `caller ${i}`, false).then((slot) => {
      order.push('caller');
      held.push(slot!);
    }),
  );
  await waitFor('both callers to be registered as waiting', async () => {
    const keys = await findKeys(redis, '*:waiting');
    const counts = await Promise.all(keys.map((key) => redis.zcard(key)));
    return counts.some((count) => count >= 2);
  });
  for (let i = 0; i < 2; i++) limiters[i % 2]!.release(held.shift()!, 'ok');
  await Promise.all(callers);
  t.deepEqual(order, ['caller', 'caller']);
  t.is(backgroundGrants, 0);
  cancellation.abort();
  await Promise.all(waiting);
  for (const slot of held) limiters[0]!.release(slot, 'ok');
});

test('an account with one waiting job gets a slot, even if another worker has many waiting jobs of another account', async (t) => {
  const redis = await openRedis(t);
  const candidates = listCandidates(createRoute('narrow', { maxConcurrency: 1 }));
  const [busy, idle] = [
    new RouteLimiter(redis, randomUUID(), log),
    new RouteLimiter(redis, randomUUID(), log),
  ];
  t.teardown(() => Promise.all([busy.stop(), idle.stop()]));
  const cancellation = new AbortController();
  const order: string[] = [];
  let held: CallSlot | null = null;
  const wait = (limiter: RouteLimiter, accountId: string): void => {
    const limits = {
      accountIds: () => [accountId],
      signal: cancellation.signal,
      deadlineAtMs: Date.now() + 60_000,
      waitLimits: { keyMs: 0, breakerMs: 0 },
      isBackground: true,
    };
    limiter.acquire(candidates, limits).then(
      (slot) => {
        order.push(accountId);
        held = slot;
      },
      () => undefined,
    );
  };
  for (let i = 0; i < 9; i++) wait(busy, 'many');
  await waitFor('the first slot', () => held);
  wait(idle, 'single');
  // By now Redis has handled the first request of the idle worker.
  await redis.ping();
  while (order.length < 6 && !order.includes('single')) {
    const { length } = order;
    busy.release(held!, 'ok');
    await waitFor('the next slot', () => order.length > length);
  }
  t.is(order.at(-1), 'single', order.join(' '));
  cancellation.abort();
  (order.at(-1) === 'single' ? idle : busy).release(held!, 'ok');
});
