import { randomUUID } from 'node:crypto';
import { mock } from 'node:test';
import test from 'ava';
import {
  createRedis,
  waitUntilReady,
  type RedisClient,
} from '../../../shared/platform/redis/redis-client.ts';
import { maxInlineBytes } from '../../../shared/work/queue/payload-limits.ts';
import { redisChannels } from '../../../shared/platform/redis/redis-keys.ts';
import { createLogger } from '../../../shared/platform/runtime/logger.ts';
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

function createPublisher(onNoListeners: (channel: string) => unknown): ReplyPublisher {
  return new ReplyPublisher({
    workerId: 'worker',
    redis,
    payloads: redis,
    storedFrames: { append: () => Promise.resolve(null) },
    log: createLogger('test', 'silent'),
    onNoListeners,
  });
}

const { signal } = new AbortController();
const request = { requestId: randomUUID(), accountId: 'account', claimHash: null };

test.serial('a response whose listeners are gone is not held back', async (t) => {
  // No acknowledgement arrives, and no timeout either.
  mock.timers.enable({ apis: ['setTimeout'] });
  t.teardown(() => mock.timers.reset());
  const channel = redisChannels.reply(randomUUID());
  let lost = 0;
  const publisher = createPublisher(() => (lost += 1));
  const writer = new ReplyWriter(publisher, channel, request, 1);
  for (let i = 0; i < 64; i++) {
    writer.result(Buffer.alloc(maxInlineBytes));
    await writer.whenWritable();
  }
  await publisher.sent();
  t.true(lost > 0);
});

test('a channel with listeners is confirmed once, and then needs no wait for a second', async (t) => {
  const channel = redisChannels.reply(randomUUID());
  await listenTo(t, server.url, channel);
  const publisher = createPublisher(() => t.fail('it has a listener'));
  const writer = new ReplyWriter(publisher, channel, request, 1);
  writer.accepted('worker');
  const confirmed = writer.whenConfirmed(signal);
  t.not(confirmed, null);
  await confirmed;
  t.is(writer.whenConfirmed(signal), null);
});

test('by the time that a channel without listeners is confirmed, its requests have been cancelled', async (t) => {
  const channel = redisChannels.reply(randomUUID());
  const lost: string[] = [];
  const cancelled = new AbortController();
  const writer = new ReplyWriter(
    createPublisher((one) => {
      lost.push(one);
      cancelled.abort();
    }),
    channel,
    request,
    1,
  );
  writer.accepted('worker');
  await writer.whenConfirmed(cancelled.signal);
  t.deepEqual(lost, [channel]);
  t.not(writer.whenConfirmed(cancelled.signal), null, 'the next call asks again');
});

test('a long text is sent in frames that end with an event, unless an event is longer than a frame', (t) => {
  const frames: Buffer[] = [];
  const publisher = {
    send: (_channel: string, { payload }: { payload: Buffer | string }) =>
      void frames.push(Buffer.from(payload)),
    grow: () => undefined,
  } as unknown as ReplyPublisher;
  const event = (length: number): string => `data: ${'й'.repeat(length)}\n\n`;
  const text = [...Array.from({ length: 60 }, () => event(1_000)), event(100_000), event(3)].join('');
  new ReplyWriter(publisher, 'channel', request, 1).delta(text, 1);
  t.is(Buffer.concat(frames).toString(), text);
  t.true(frames.every(({ length }) => length <= maxInlineBytes));
  // The event of 200 KB takes several frames, and all others are whole.
  t.true(frames.filter((frame) => !frame.toString('latin1').endsWith('\n\n')).length <= 3);
});
