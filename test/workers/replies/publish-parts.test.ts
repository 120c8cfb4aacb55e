import { randomUUID } from 'node:crypto';
import test, { type ExecutionContext } from 'ava';
import fc from 'fast-check';
import { publishParts } from '../../../workers/replies/publish-parts.ts';
import {
  createRedis,
  waitUntilReady,
  type RedisClient,
} from '../../../shared/platform/redis/redis-client.ts';
import { createLogger } from '../../../shared/platform/runtime/logger.ts';
import { listenTo } from '../../support/listen-to.ts';
import { openTestRedis, type OpenedRedis } from '../../support/stores.ts';

const log = createLogger('test', 'silent');
let server: OpenedRedis;

test.before(async () => {
  server = await openTestRedis();
});
test.after.always(() => server.close());

async function connect(t: ExecutionContext): Promise<RedisClient> {
  const client = createRedis(server.url, 'payloads', log);
  t.teardown(() => client.disconnect());
  await waitUntilReady(client);
  return client;
}

interface TestChannel {
  readonly redis: RedisClient;
  readonly channel: string;
  /** The next message received. */
  readonly receive: () => Promise<Buffer>;
}

async function openTestChannel(
  t: ExecutionContext,
  channel = `channel of ${randomUUID()}`,
): Promise<TestChannel> {
  const redis = await connect(t);
  const { receive } = await listenTo(t, server.url, channel);
  return { redis, channel, receive };
}

const bytes = fc.oneof(
  fc.uint8Array({ maxLength: 300 }),
  fc.constantFrom('', '\r\n', '$3\r\n', 'ünï').map((text) => Buffer.from(text)),
);

test('a subscriber receives the concatenated bytes of the parts, for any bytes', async (t) => {
  const { redis, channel, receive } = await openTestChannel(t, `chännel ${randomUUID()}`);
  await fc.assert(
    fc.asyncProperty(fc.array(bytes, { maxLength: 6 }), async (parts) => {
      t.is(await publishParts(redis, channel, parts), 1);
      t.deepEqual(await receive(), Buffer.concat(parts));
    }),
  );
});

test('the parts of concurrent messages are not interleaved', async (t) => {
  const { redis, channel, receive } = await openTestChannel(t);
  for (let round = 0; round < 3; round++) {
    const messages = Array.from({ length: 24 }, (_, i) => [
      Buffer.from([i]),
      Buffer.alloc(512 * 1024, round * 24 + i),
    ]);
    const sent = Promise.all(messages.map((parts) => publishParts(redis, channel, parts)));
    for (const parts of messages) t.true((await receive()).equals(Buffer.concat(parts)));
    await sent;
  }
});

test('messages and other commands are executed in the order of their calls, and their replies are matched correctly', async (t) => {
  const { redis, channel, receive } = await openTestChannel(t);
  const key = randomUUID();
  const answers = await Promise.all([
    redis.spublish(channel, 'first'),
    redis.set(key, 'value'),
    publishParts(redis, channel, [Buffer.from('sec'), Buffer.from('ond')]),
    redis.get(key),
    publishParts(redis, `${channel} where nobody listens`, [Buffer.from('unheard')]),
    redis.spublish(channel, 'third'),
  ]);
  t.deepEqual(answers, [1, 'OK', 1, 'value', 0, 1]);
  for (const text of ['first', 'second', 'third']) t.is((await receive()).toString(), text);
});

// Serial, because it pauses writes to Redis, which would delay all other tests.
test.serial(
  'if its connection breaks, a message fails with an error, and later messages arrive complete',
  async (t) => {
    const { redis, channel, receive } = await openTestChannel(t);
    const other = await connect(t);
    const id = await redis.client('ID');
    const large = [Buffer.alloc(4 * 1024 * 1024, 'lost')];
    const disconnected = new Promise<void>((resolve) => redis.once('close', () => resolve()));
    await other.client('PAUSE', 60_000, 'WRITE');
    const lost = t.throwsAsync(publishParts(redis, channel, large));
    await other.client('KILL', 'ID', id);
    await Promise.all([lost, disconnected]);
    await t.throwsAsync(publishParts(redis, channel, [Buffer.from('while it is away')]));
    await other.client('UNPAUSE');
    await waitUntilReady(redis);

    const messages = [1, 2, 3].map((i) => [Buffer.from('after '), Buffer.alloc(4 * 1024 * 1024, i)]);
    const sent = messages.map((parts) => publishParts(redis, channel, parts));
    for (const parts of messages) t.true((await receive()).equals(Buffer.concat(parts)));
    t.deepEqual(await Promise.all(sent), [1, 1, 1]);
  },
);
