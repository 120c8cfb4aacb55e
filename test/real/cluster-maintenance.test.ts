import { setImmediate as nextTurn } from 'node:timers/promises';
import test, { type ExecutionContext } from 'ava';
import { Cluster } from 'ioredis';
import { countSubscribers, createRedis, waitUntilReady } from '../../shared/platform/redis/redis-client.ts';
import { Subscriber } from '../../shared/platform/redis/subscriber-client.ts';
import { ReplyPublisher } from '../../workers/replies/reply-publisher.ts';
import { ReplyWriter } from '../../workers/replies/reply-writer.ts';
import { createLogger } from '../../shared/platform/runtime/logger.ts';
import { startRedisCluster, type RedisCluster } from '../support/redis-cluster.ts';
import { waitFor } from '../support/wait-for.ts';

/** Planned failovers and slot migrations of a running Cluster, and a master that hangs. */

const log = createLogger('test', 'silent');
/** Enough channels for each master to have some. */
const channels = Array.from({ length: 12 }, (_, i) => `mg:reply:${i}`);

let cluster: RedisCluster;
test.before(async () => {
  cluster = await startRedisCluster();
});
test.after.always(async () => cluster.close());

interface ListeningSubscriber {
  readonly subscriber: Subscriber;
  readonly messages: string[];
  readonly lost: Set<string>;
}

async function listen(t: ExecutionContext, urls = cluster.url): Promise<ListeningSubscriber> {
  const subscriber = new Subscriber(urls, log, 1_000);
  t.teardown(() => subscriber.close());
  const listening = { subscriber, messages: [] as string[], lost: new Set<string>() };
  for (const channel of channels) {
    subscriber.listen(channel, {
      onMessage: (message) =>
        message.length > 0 && listening.messages.push(`${channel}: ${message.toString()}`),
      onLost: () => listening.lost.add(channel),
    });
  }
  await subscriber.start();
  return listening;
}

async function connect(t: ExecutionContext) {
  const redis = createRedis(cluster.url, 'commands', log);
  t.teardown(() => redis.disconnect());
  await waitUntilReady(redis);
  return redis;
}

const waitUntilCounted = (redis: Awaited<ReturnType<typeof connect>>): Promise<unknown> =>
  waitFor('every master to count its subscribers', async () => {
    // Fails until the client knows which master owns which slots.
    const counts = await Promise.allSettled(channels.map((channel) => countSubscribers(redis, channel)));
    return counts.every((count) => count.status === 'fulfilled' && count.value === 1);
  });

test.serial(
  'a subscriber subscribes at the master that others publish to, even if it connects to another node first',
  async (t) => {
    t.timeout(60_000);
    const redis = await connect(t);
    const nodes = cluster.url.split(',');
    for (const first of nodes) {
      const { subscriber } = await listen(t, [first, ...nodes.filter((node) => node !== first)].join(','));
      const counts = await Promise.all(channels.map((channel) => redis.spublish(channel, '')));
      t.deepEqual(
        counts,
        channels.map(() => 1),
        `connected to ${new URL(first).host} first`,
      );
      subscriber.close();
      await waitFor('the subscriber to be gone', async () => {
        const counts = await Promise.all(channels.map((channel) => redis.spublish(channel, '')));
        return counts.every((count) => count === 0);
      });
    }
  },
);

test.serial('after a planned failover, subscriptions return, and none is reported as missing', async (t) => {
  t.timeout(60_000);
  const redis = await connect(t);
  const { messages, lost } = await listen(t);
  for (const port of await cluster.masters()) await cluster.handOver(port);
  await waitFor('every channel to be lost', () => lost.size === channels.length);
  const other = await connect(t);
  await waitUntilCounted(other);

  // This client does not know the new masters yet. It publishes to their replicas, which report zero subscribers.
  const withoutListeners: string[] = [];
  const publisher = new ReplyPublisher({
    workerId: 'w',
    redis,
    payloads: redis,
    storedFrames: { append: () => Promise.reject(new Error('nothing is stored here')) },
    log,
    onNoListeners: (channel) => withoutListeners.push(channel),
  });
  const request = { requestId: crypto.randomUUID(), accountId: 'a', claimHash: null };
  for (const channel of channels) new ReplyWriter(publisher, channel, request, 0).accepted('w');
  await publisher.sent();
  t.deepEqual(withoutListeners, []);
  await waitFor('the frames', () => messages.length === channels.length);

  publisher.probe(['mg:reply:nobody']);
  await publisher.sent();
  t.deepEqual(withoutListeners, ['mg:reply:nobody']);
});

test.serial('messages of a migrating slot are received before, during and after the migration', async (t) => {
  t.timeout(60_000);
  const redis = await connect(t);
  const channel = channels[0]!;
  const [[firstPort], others] = await findOwner(channel);
  const slot = Number(await cluster.call(firstPort!, 'CLUSTER', 'KEYSLOT', channel));
  const target = others[0]!;
  const ids = await Promise.all([firstPort!, target].map((port) => cluster.call(port, 'CLUSTER', 'MYID')));
  await cluster.call(target, 'CLUSTER', 'SETSLOT', slot, 'IMPORTING', String(ids[0]));
  await cluster.call(firstPort!, 'CLUSTER', 'SETSLOT', slot, 'MIGRATING', String(ids[1]));
  const { messages, lost } = await listen(t);
  t.is(await countSubscribers(redis, channel), 1);
  await cluster.call(target, 'CLUSTER', 'SETSLOT', slot, 'NODE', String(ids[1]));
  await cluster.call(firstPort!, 'CLUSTER', 'SETSLOT', slot, 'NODE', String(ids[1]));
  await waitFor('the channel to be lost', () => lost.has(channel));
  await waitUntilCounted(redis);
  await redis.spublish(channel, 'after');
  await waitFor('the message', () => messages.includes(`${channel}: after`));
  t.deepEqual([...lost], [channel], 'no other slot has moved');
});

/** @returns the ports of the master that owns a channel's slot, and of the other masters */
async function findOwner(channel: string): Promise<[number[], number[]]> {
  const masters = await cluster.masters();
  const owns = async (port: number): Promise<boolean> =>
    cluster.call(port, 'EXISTS', channel).then(
      () => true,
      () => false,
    );
  const isOwner = await Promise.all(masters.map(owns));
  return [masters.filter((_, i) => isOwner[i]), masters.filter((_, i) => !isOwner[i])];
}

test.serial('after a master hangs, every slot is served again once its replica is promoted', async (t) => {
  t.timeout(60_000);
  const redis = await connect(t);
  const { lost } = await listen(t);
  const [port] = await cluster.masters();
  const resume = cluster.pause(port!);
  t.teardown(resume);
  await cluster.waitForFailover();
  await waitFor('the subscriptions to be lost', () => lost.size > 0);
  await t.notThrowsAsync(
    waitFor(
      'every slot to be served',
      async () => {
        const replies = await Promise.allSettled(channels.map((channel) => redis.set(channel, '', 'EX', 60)));
        return replies.every(({ status }) => status === 'fulfilled');
      },
      20_000,
    ),
  );
  await waitUntilCounted(redis);
});

test('a closed client stays closed after its last connection has ended, and does not reconnect', async (t) => {
  const redis = await connect(t);
  t.true(redis instanceof Cluster);
  const nodes = (redis as Cluster).nodes('all');
  const ended = nodes.map((node) => new Promise((resolve) => node.once('end', resolve)));
  redis.disconnect();
  await Promise.all(ended);
  await nextTurn();
  t.is(redis.status, 'end');
});

test('a client that only has the URLs of replicas finds the masters', async (t) => {
  const masters = await cluster.masters();
  const replicas = cluster.url.split(',').filter((url) => !masters.includes(Number(new URL(url).port)));
  const redis = createRedis(replicas.slice(0, 2).join(','), 'commands', log);
  t.teardown(() => redis.disconnect());
  await waitUntilReady(redis);
  const replies = await Promise.all(channels.map((channel) => redis.set(`found:${channel}`, '', 'EX', 60)));
  t.deepEqual([...new Set(replies)], ['OK']);
});

test('commands get the right replies, even after other commands were rejected because their node was missing', async (t) => {
  const redis = (await connect(t)) as Cluster;
  await Promise.all(channels.map((channel) => redis.set(`of:${channel}`, channel, 'EX', 60)));
  const pool = redis['connectionPool'] as { removeNode(key: string): void };
  for (let round = 0; round < 8; round++) {
    await waitFor('all masters', () => redis.nodes('master').length === 3);
    // Simulates that one master is lost while the second is still connecting and the third works.
    const [lost, reached] = redis.nodes('master');
    pool.removeNode(`${lost!.options.host}:${lost!.options.port}`);
    const { status } = reached!;
    reached!.status = 'connecting';
    const refused = Promise.allSettled(channels.map((channel) => redis.get(`of:${channel}`)));
    await nextTurn();
    reached!.status = status;
    const pending = channels.map((channel) => redis.get(`of:${channel}`));
    const wrong = (await Promise.allSettled(pending)).flatMap((reply, i) => {
      if (reply.status === 'fulfilled') return reply.value === channels[i] ? [] : [reply.value];
      // Commands for the lost master are rejected; the others must not be delayed until they time out.
      const { message } = reply.reason as Error;
      return message === 'Command timed out' ? [message] : [];
    });
    t.deepEqual(wrong, []);
    await refused;
  }
});
