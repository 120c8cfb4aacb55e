import { randomUUID } from 'node:crypto';
import test from 'ava';
import { createRedis, waitUntilReady, type RedisClient } from '../../../shared/redis/redis-client.ts';
import { redisChannels } from '../../../shared/redis/redis-keys.ts';
import { createLogger } from '../../../shared/runtime/logger.ts';
import { ReplyPublisher } from '../../../workers/replies/reply-publisher.ts';
import { ReplyWriter } from '../../../workers/replies/reply-writer.ts';
import { listenTo } from '../../support/listen-to.ts';
import { openTestRedis, type OpenedStore } from '../../support/stores.ts';

let server: OpenedStore;
let redis: RedisClient;
test.before(async () => {
  server = await openTestRedis();
  redis = createRedis(server.url, 'commands', createLogger('test', 'silent'));
  await waitUntilReady(redis);
});
test.after.always(async () => {
  redis.disconnect();
  await server.close();
});

function createPublisher(onNoListeners: (channel: string) => void): ReplyPublisher {
  return new ReplyPublisher({
    workerId: 'worker',
    redis,
    payloads: redis,
    storedFrames: { append: () => Promise.resolve(null) },
    log: createLogger('test', 'silent'),
    onNoListeners,
  });
}

const request = { requestId: randomUUID(), accountId: 'account', claimHash: null };

test('a channel with listeners is confirmed once, and then needs no wait for a second', async (t) => {
  const channel = redisChannels.reply(randomUUID());
  await listenTo(t, server.url, channel);
  const publisher = createPublisher(() => t.fail('it has a listener'));
  const writer = new ReplyWriter(publisher, channel, request, 1);
  writer.accepted('worker');
  const confirmed = writer.whenConfirmed();
  t.not(confirmed, null);
  await confirmed;
  t.is(writer.whenConfirmed(), null);
});

test('by the time that a channel without listeners is confirmed, its requests have been cancelled', async (t) => {
  const channel = redisChannels.reply(randomUUID());
  const lost: string[] = [];
  const writer = new ReplyWriter(
    createPublisher((one) => lost.push(one)),
    channel,
    request,
    1,
  );
  writer.accepted('worker');
  await writer.whenConfirmed();
  t.deepEqual(lost, [channel]);
  t.not(writer.whenConfirmed(), null, 'the next call asks again');
});
