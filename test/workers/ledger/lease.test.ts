import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import test from 'ava';
import type { RedisClient } from '../../../shared/platform/redis/redis-client.ts';
import { LeaseTaker } from '../../../workers/ledger/lease-taker.ts';
import { Lease } from '../../../workers/ledger/lease.ts';
import { useRedis } from '../../support/use-redis.ts';
import { waitFor } from '../../support/wait-for.ts';

const redis = useRedis(test);

const open = (key: string, client: RedisClient = redis()): Lease => new Lease(client, randomUUID(), key);

test('a lease has one holder, which keeps it by taking it again, until it releases it', async (t) => {
  const [one, other] = [open('one-holder'), open('one-holder')];
  t.true(await one.take());
  t.false(await other.take());
  t.true(await one.take());
  await one.release();
  t.true(await other.take());
  t.false(await one.take());
});

test('Redis is asked for a held lease at most once a second, and the lease is renewed in time', async (t) => {
  const lease = open('renewed');
  t.true(await lease.take());
  // Only a call that asks Redis extends the lease again.
  await redis().pexpire('renewed', 60_000);
  t.true(await lease.take());
  t.true((await redis().pttl('renewed')) > 50_000);
  await waitFor('the lease to be renewed', async () => {
    t.true(await lease.take());
    return (await redis().pttl('renewed')) <= 5_000;
  });
});

test('a holder that lost its lease notices within a second', async (t) => {
  const [one, other] = [open('lost'), open('lost')];
  t.true(await one.take());
  await redis().del('lost');
  t.true(await other.take());
  await delay(1_000);
  t.false(await one.take());
});

test('a lease that is released while it is taken is not held without asking', async (t) => {
  const [one, other] = [open('in-flight'), open('in-flight')];
  const taking = one.take();
  await one.release();
  t.true(await taking);
  t.true(await other.take());
  t.false(await one.take());
});

test('a holder that doubts its lease asks Redis', async (t) => {
  const [one, other] = [open('doubted'), open('doubted')];
  t.true(await one.take());
  await redis().del('doubted');
  t.true(await other.take());
  t.true(await one.take());
  one.doubt();
  t.false(await one.take());
});

test.serial('leases that are taken in one turn of the event loop take one script', async (t) => {
  const worker = randomUUID();
  const client = redis();
  const taker = new LeaseTaker(client, worker);
  const keys = ['together-a', 'together-b', 'together-c'];
  await open('together-b').take();
  const leases = keys.map((key) => new Lease(client, worker, key, taker));
  const ran = async (): Promise<number> => {
    const calls = /cmdstat_evalsha:calls=(\d+)/.exec(await client.info('commandstats'));
    return Number(calls?.[1] ?? 0);
  };
  await taker.take('together-before');
  const before = await ran();
  t.deepEqual(await Promise.all(leases.map((lease) => lease.take())), [true, false, true]);
  t.is((await ran()) - before, client.isCluster ? 3 : 1);
});
