import { randomUUID } from 'node:crypto';
import test, { type ExecutionContext } from 'ava';
import { findWays } from '../../../shared/routing/route-way.ts';
import type { RouteGrant } from '../../../shared/routing/grant-script.ts';
import { createLogger } from '../../../shared/runtime/logger.ts';
import { RouteGate } from '../../../workers/routing/route-gate.ts';
import { findKeys } from '../../support/all-of-redis.ts';
import { openTestRedis } from '../../support/stores.ts';
import { createRedis, waitUntilReady, type RedisClient } from '../../../shared/redis/redis-client.ts';
import { createRoute } from '../../support/routing.ts';
import { waitFor } from '../../support/wait-for.ts';

/** Calls for durable jobs, for which nobody waits at a socket. */

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

test('calls in the background leave the last eighth of the slots free, and go behind all that somebody waits for', async (t) => {
  const redis = await openRedis(t);
  const ways = findWays(createRoute('pictures', { maxConcurrency: 8 }));
  const gates = [new RouteGate(redis, randomUUID(), log), new RouteGate(redis, randomUUID(), log)];
  t.teardown(() => Promise.all(gates.map((gate) => gate.stop())));
  const leaving = new AbortController();
  const enter = (gate: RouteGate, accountId: string, isBackground: boolean): Promise<RouteGrant | null> =>
    gate.enter(ways, {
      accountIds: () => [accountId],
      signal: leaving.signal,
      deadlineAtMs: Date.now() + 60_000,
      patience: { keyMs: 0, breakerMs: 0 },
      isBackground,
    });
  const held: RouteGrant[] = [];
  for (let i = 0; i < 7; i++) held.push((await enter(gates[i % 2]!, 'many', true))!);
  let late = 0;
  const waiting = [0, 1].map((i) =>
    enter(gates[i]!, 'many', true).then(
      (grant) => {
        late += 1;
        held.push(grant!);
      },
      () => undefined,
    ),
  );
  // The eighth slot is for whoever waits.
  held.push((await enter(gates[0]!, 'caller', false))!);
  t.is(late, 0);

  const order: string[] = [];
  const callers = gates.map((gate, i) =>
    enter(gate, `caller ${i}`, false).then((grant) => {
      order.push('caller');
      held.push(grant!);
    }),
  );
  await waitFor('both callers to be known to wait', async () => {
    const keys = await findKeys(redis, '*:waiting');
    const counts = await Promise.all(keys.map((key) => redis.zcard(key)));
    return counts.some((count) => count >= 2);
  });
  for (let i = 0; i < 2; i++) gates[i % 2]!.leave(held.shift()!, 'ok');
  await Promise.all(callers);
  t.deepEqual(order, ['caller', 'caller']);
  t.is(late, 0);
  leaving.abort();
  await Promise.all(waiting);
  for (const grant of held) gates[0]!.leave(grant, 'ok');
});

test('an account whose job waits in one worker has a slot, although another worker has a job of another account for each', async (t) => {
  const redis = await openRedis(t);
  const ways = findWays(createRoute('narrow', { maxConcurrency: 1 }));
  const [busy, idle] = [new RouteGate(redis, randomUUID(), log), new RouteGate(redis, randomUUID(), log)];
  t.teardown(() => Promise.all([busy.stop(), idle.stop()]));
  const leaving = new AbortController();
  const order: string[] = [];
  let held: RouteGrant | null = null;
  const wait = (gate: RouteGate, accountId: string): void => {
    const limits = {
      accountIds: () => [accountId],
      signal: leaving.signal,
      deadlineAtMs: Date.now() + 60_000,
      patience: { keyMs: 0, breakerMs: 0 },
      isBackground: true,
    };
    gate.enter(ways, limits).then(
      (grant) => {
        order.push(accountId);
        held = grant;
      },
      () => undefined,
    );
  };
  for (let i = 0; i < 9; i++) wait(busy, 'many');
  await waitFor('the first slot', () => held);
  wait(idle, 'single');
  // Redis has answered the idle worker's first question.
  await redis.ping();
  while (order.length < 6 && !order.includes('single')) {
    const { length } = order;
    busy.leave(held!, 'ok');
    await waitFor('the next slot', () => order.length > length);
  }
  t.is(order.at(-1), 'single', order.join(' '));
  leaving.abort();
  (order.at(-1) === 'single' ? idle : busy).leave(held!, 'ok');
});
