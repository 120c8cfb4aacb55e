import { randomUUID } from 'node:crypto';
import { setImmediate as nextTurn } from 'node:timers/promises';
import test, { type ExecutionContext } from 'ava';
import { BulkShares } from '../../../../api/requests/dispatch/bulk-shares.ts';
import { AppError } from '../../../../shared/contract/errors.ts';
import { redisChannels } from '../../../../shared/platform/redis/redis-keys.ts';
import { createLogger } from '../../../../shared/platform/runtime/logger.ts';
import { useRedis } from '../../../support/use-redis.ts';
import { waitFor } from '../../../support/wait-for.ts';
import { listenTo } from '../../../support/listen-to.ts';

const redis = useRedis(test);
const log = createLogger('test', 'silent');

/** Bulk shares with a mutable number of worker slots. */
function openShares(t: ExecutionContext, bulkRuns: number) {
  const workers = { bulkRuns };
  const registry = {
    sumLoads: async () => ({ workers: 1, taking: 1, active: 0, waitingInputs: 0, faults: 0, ...workers }),
    beatApi: async () => undefined,
    leaveApi: async () => undefined,
  };
  const shares = new BulkShares(redis(), registry, randomUUID(), log);
  t.teardown(() => shares.close());
  return {
    workers,
    tryEnter: (accountId: string) => shares.tryEnter('image', accountId),
    enter: (accountId: string, deadlineAtMs = Date.now() + 60_000) => {
      const ended = new AbortController();
      const entry = shares.enter('image', { accountId, deadlineAtMs, model: 'any' }, ended.signal);
      const one = { state: 'waiting', place: () => entry.position(), end: () => ended.abort() };
      entry.granted.then(
        () => (one.state = 'granted'),
        (error: Error) => (one.state = error instanceof AppError ? error.code : error.name),
      );
      return one;
    },
  };
}

type Entry = ReturnType<ReturnType<typeof openShares>['enter']>;
const count = (all: readonly Entry[], state: string): number =>
  all.filter((one) => one.state === state).length;

test('an account gets half of the worker slots, another gets half of those left, and waiting requests start as others finish', async (t) => {
  const { enter } = openShares(t, 16);
  const many = Array.from({ length: 20 }, () => enter('many'));
  await waitFor('all worker slots of its share', () => count(many, 'granted') === 8);
  const other = Array.from({ length: 4 }, () => enter('other'));
  await waitFor('the share of the other account', () => count(other, 'granted') === 4);
  t.is(count(many, 'granted'), 8);
  t.deepEqual([many[8]!.place(), many[9]!.place()], [1, 2]);
  // With six requests left, the account still has its share: half of the 12 slots not held by the other account.
  many.slice(0, 2).forEach((one) => one.end());
  t.is(count(many, 'granted'), 8);
  many[2]!.end();
  await waitFor('the next request', () => many[8]!.state === 'granted');
  // A request cancelled before it starts uses no worker slot.
  many[9]!.end();
  await waitFor('the cancellation', () => many[9]!.state === 'AbortError');
  many[3]!.end();
  await waitFor('the request after it', () => many[10]!.state === 'granted');
  t.is(count(many, 'granted'), 10);
});

test('a share is available without waiting only once the workers have been looked up, within the account’s part, and if none of its requests waits', async (t) => {
  const { enter, tryEnter } = openShares(t, 8);
  t.is(tryEnter('a'), null, 'the number of worker slots is not known yet');
  const first = enter('b');
  await waitFor('the look-up', () => first.state === 'granted');
  first.end();
  const releases = Array.from({ length: 4 }, () => tryEnter('a'));
  t.false(releases.includes(null));
  t.is(tryEnter('a'), null, 'half of the slots are held');
  const waiting = enter('a');
  await nextTurn();
  releases[0]!();
  await waitFor('the waiting request', () => waiting.state === 'granted');
  const next = enter('a');
  t.is(tryEnter('a'), null, 'a request of the account waits');
  next.end();
  releases[1]!();
  releases[1]!();
  await waitFor('the cancellation', () => next.state !== 'waiting');
  t.not(tryEnter('a'), null);
  t.is(tryEnter('a'), null, 'a share is released once');
});

test('the slots of all live workers are split evenly among the api processes', async (t) => {
  const url = `redis://127.0.0.1:${(redis().options as { port: number }).port}`;
  for (let i = 0; i < 2; i++) await listenTo(t, url, redisChannels.apis);
  const { enter, workers } = openShares(t, 16);
  const many = Array.from({ length: 20 }, () => enter('many'));
  await waitFor("half of this process's half", () => count(many, 'granted') === 4);
  workers.bulkRuns = 32;
  await waitFor('more granted slots, after a worker was added', () => count(many, 'granted') === 8);
  workers.bulkRuns = 0;
  many[0]!.end();
  await waitFor(
    'the previous number of worker slots while no worker is known',
    () => count(many, 'granted') === 9,
  );
  t.is(count(many, 'waiting'), 11);
});

test('a request that waits past its deadline fails, and requests beyond the queue limit are rejected', async (t) => {
  const { enter } = openShares(t, 1);
  enter('many');
  const late = enter('many', Date.now() + 50);
  await waitFor('the deadline', () => late.state === 'deadline_exceeded');
  const manyMore = Array.from({ length: 10_001 }, () => enter('many'));
  while (count(manyMore, 'queue_full') === 0) await nextTurn();
  t.is(count(manyMore, 'queue_full'), 1);
  manyMore.forEach((one) => one.end());
});
